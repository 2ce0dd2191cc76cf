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

// memberSecret begins the names of the secrets in which records are.
const memberSecret = "zone-member-"

// Registry keeps a record for each zone among the secrets: nobody can write one through the API. Safe for concurrent use.
type Registry struct {
	keeper *secrets.Keeper
	// forgetting is secrets.Forgetting.
	forgetting func() time.Time

	mu     sync.Mutex
	cached map[string]cachedRecord // guarded by mu, by zone
}

type cachedRecord struct {
	version uint64
	record  *Record // never changed
}

// NewRegistry keeps records among the secrets of keeper.
func NewRegistry(keeper *secrets.Keeper, now func() time.Time) *Registry {
	return &Registry{keeper: keeper, forgetting: secrets.Forgetting(now), cached: map[string]cachedRecord{}}
}

// Forget is the clock for forgetting: what has ended by it may be dropped.
func (s *Registry) Forget() time.Time { return s.forgetting() }

// Get returns what the store has of a zone, nil where it has nothing. The caller must not change it.
func (s *Registry) Get(ctx context.Context, zone string) (*Record, uint64, error) {
	name := memberSecret + zone
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
		return nil, 0, fmt.Errorf("what is kept of zone %s: %w", zone, secrets.ErrDamaged)
	}
	s.cached[zone] = cachedRecord{version, m}
	return m, version, nil
}

// Update changes what is kept of a zone, durably. change is called again when somebody else wrote in between; its
// error leaves all as it was, and so does ErrNothing, which is no failure.
func (s *Registry) Update(ctx context.Context, zone string, change func(*Record) error) error {
	for {
		old, version, err := s.Get(ctx, zone)
		if err != nil {
			return err
		}
		m := old.Clone(zone)
		m.Tidy(s.forgetting())
		if err := change(m); errors.Is(err, ErrNothing) {
			return nil
		} else if err != nil {
			return err
		}
		plain, err := json.Marshal(m)
		if err != nil {
			return err
		}
		_, err = s.keeper.Put(ctx, memberSecret+zone, plain, version)
		if !errors.Is(err, secrets.ErrChanged) {
			return err
		}
	}
}

// Drop removes what is kept of a zone, durably, where that is blank.
func (s *Registry) Drop(ctx context.Context, zone string) error {
	for {
		m, version, err := s.Get(ctx, zone)
		if err != nil || m == nil || !m.Blank() {
			return err
		}
		if err := s.keeper.Delete(ctx, memberSecret+zone, version); !errors.Is(err, secrets.ErrChanged) {
			return err
		}
	}
}

// ErrNothing: there is nothing to change.
var ErrNothing = errors.New("nothing to change")

// Zones lists whose records there are, deleted ones too.
func (s *Registry) Zones() []string {
	var out []string
	for _, name := range s.keeper.Names() {
		if zone, ok := strings.CutPrefix(name, memberSecret); ok {
			out = append(out, zone)
		}
	}
	return out
}
