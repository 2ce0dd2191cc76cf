package enrolment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/secrets"
)

// recordSecret prefixes the names of the secrets that hold records.
const recordSecret = "zone-member-"

// Registry stores a record for each zone as a secret, which the API cannot write. Safe for concurrent use.
type Registry struct {
	keeper *secrets.Keeper
	// forgetting is secrets.Forgetting.
	forgetting func() time.Time

	mu     sync.Mutex
	cached map[string]cachedRecord // guarded by mu, by zone
}

type cachedRecord struct {
	version uint64
	record  *Record // immutable
}

// NewRegistry returns the registry in the secrets of keeper.
func NewRegistry(keeper *secrets.Keeper, now func() time.Time) *Registry {
	return &Registry{keeper: keeper, forgetting: secrets.Forgetting(now), cached: map[string]cachedRecord{}}
}

// Forget returns the clock for forgetting: what ended before that time may be dropped.
func (s *Registry) Forget() time.Time { return s.forgetting() }

// Get returns a zone's record in the store, or nil. The caller must not change it.
func (s *Registry) Get(ctx context.Context, zone string) (*Record, uint64, error) {
	name := recordSecret + zone
	version := s.keeper.Version(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if version == 0 {
		delete(s.cached, zone)
		return nil, 0, nil
	}
	if c, ok := s.cached[zone]; ok && c.version == version {
		return c.record, version, nil
	}
	plain, version, err := s.keeper.Get(ctx, name)
	if errors.Is(err, secrets.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	m := &Record{}
	if err := json.Unmarshal(plain, m); err != nil || m.Zone != zone {
		return nil, 0, fmt.Errorf("the record of zone %s: %w", zone, secrets.ErrDamaged)
	}
	s.cached[zone] = cachedRecord{version, m}
	return m, version, nil
}

// Update changes a zone's record durably. It calls change again if another writer was first. An error of change leaves
// the record unchanged, and so does ErrNothing, which is not a failure. It returns both only if the record is the
// newest on all replicas.
func (s *Registry) Update(ctx context.Context, zone string, change func(*Record) error) error {
	for {
		old, version, err := s.Get(ctx, zone)
		if err != nil {
			return err
		}
		m := old.Clone(zone)
		m.Tidy(s.forgetting())
		if why := change(m); why != nil {
			err := s.keeper.Confirm(ctx, recordSecret+zone, version)
			switch {
			case errors.Is(err, secrets.ErrChanged):
				continue
			case err != nil:
				return err
			case errors.Is(why, ErrNothing):
				return nil
			}
			return why
		}
		plain, err := json.Marshal(m)
		if err != nil {
			return err
		}
		_, err = s.keeper.Put(ctx, recordSecret+zone, plain, version)
		if !errors.Is(err, secrets.ErrChanged) {
			return err
		}
	}
}

// Drop removes a zone's record durably, if it is blank.
func (s *Registry) Drop(ctx context.Context, zone string) error {
	for {
		m, version, err := s.Get(ctx, zone)
		if err != nil || m == nil || !m.Blank() {
			return err
		}
		if err := s.keeper.Delete(ctx, recordSecret+zone, version); !errors.Is(err, secrets.ErrChanged) {
			return err
		}
	}
}

// ErrNothing reports that there is nothing to change.
var ErrNothing = errors.New("nothing to change")

// Zones lists the zones with records, including deleted ones.
func (s *Registry) Zones() []string {
	var out []string
	for _, name := range s.keeper.Names() {
		if zone, ok := strings.CutPrefix(name, recordSecret); ok {
			out = append(out, zone)
		}
	}
	return out
}
