package global

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/secrets"
)

const (
	// memberSecret begins the names of the secrets in which members are.
	memberSecret = "zone-member-"
	// Limits of what is kept of one zone; the oldest go first, except tokens, of which no more are issued.
	maxCertificates = 8
	maxZoneTokens   = 32
	maxJoins        = 16
)

// member is what the global keeps of a zone that was let in by a credential, or may be. Only what stands here is good:
// withdrawing a credential is taking it out.
type member struct {
	Zone string `json:"zone"`
	// ID is the zone's own, once it has joined.
	ID           string              `json:"id,omitempty"`
	Certificates []issuedCertificate `json:"certificates,omitempty"`
	Tokens       []issuedToken       `json:"tokens,omitempty"`
	Joins        []issuedJoin        `json:"joins,omitempty"`
	// RevokedAt is when all credentials were withdrawn last; tokens that others issued before are not good.
	RevokedAt time.Time `json:"revokedAt,omitzero"`
	// Draining: the zone is about to be deleted. DeletedAt: it was.
	Draining  bool      `json:"draining,omitempty"`
	DeletedAt time.Time `json:"deletedAt,omitzero"`
}

// issuedCertificate is a certificate that the zone may connect with.
type issuedCertificate struct {
	Serial    string    `json:"serial"`
	Authority string    `json:"authority"`
	Issued    time.Time `json:"issued"`
	Expires   time.Time `json:"expires"`
	// Stored: the zone has said that it keeps this one.
	Stored bool `json:"stored"`
}

// issuedToken is a zone token.
type issuedToken struct {
	ID      string    `json:"id"`
	Scopes  []string  `json:"scopes"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
}

// issuedJoin is the token of a join string.
type issuedJoin struct {
	ID      string    `json:"id"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
	// Rejoin: it may take the place of a server that has joined before.
	Rejoin bool `json:"rejoin,omitempty"`
	// UsedBy is the SHA-256 of the public key that it was traded for; empty until then.
	UsedBy string `json:"usedBy,omitempty"`
}

// joined reports whether a server holds a certificate of this zone.
func (m *member) joined() bool { return m.ID != "" && len(m.Certificates) > 0 }

// blank reports whether this says no more than that the zone is about to be deleted.
func (m *member) blank() bool {
	return m.ID == "" && len(m.Certificates)+len(m.Tokens)+len(m.Joins) == 0 && m.RevokedAt.IsZero() && m.DeletedAt.IsZero()
}

// newest is the certificate that the zone is known to keep; nil when it keeps none.
func (m *member) newest() *issuedCertificate {
	for i := range slices.Backward(m.Certificates) {
		if c := &m.Certificates[i]; c.Stored {
			return c
		}
	}
	return nil
}

func (m *member) certificate(serial string) *issuedCertificate {
	for i := range m.Certificates {
		if m.Certificates[i].Serial == serial {
			return &m.Certificates[i]
		}
	}
	return nil
}

// withdraw takes all credentials away and returns how many there were. What was issued by a clock that was ahead of now is over all the same.
func (m *member) withdraw(now time.Time) (certificates, tokens, joins int) {
	certificates, tokens = len(m.Certificates), len(m.Tokens)
	for _, j := range m.Joins {
		if j.UsedBy == "" {
			joins++
		}
	}
	at := now.UTC()
	for _, t := range m.Tokens {
		at = later(at, t.Issued)
	}
	for _, c := range m.Certificates {
		at = later(at, c.Issued)
	}
	m.Certificates, m.Tokens, m.Joins, m.RevokedAt = nil, nil, nil, at
	return certificates, tokens, joins
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// tidy drops what time has made worthless, by the clock for forgetting.
func (m *member) tidy(now time.Time) {
	m.Certificates = slices.DeleteFunc(m.Certificates, func(c issuedCertificate) bool { return now.After(c.Expires) })
	for at := 0; len(m.Certificates) > maxCertificates; {
		if kept := m.newest(); kept != nil && kept.Serial == m.Certificates[at].Serial {
			at++ // without it the zone could not come back
		}
		m.Certificates = slices.Delete(m.Certificates, at, at+1)
	}
	m.Tokens = slices.DeleteFunc(m.Tokens, func(t issuedToken) bool { return now.After(t.Expires) })
	m.Joins = slices.DeleteFunc(m.Joins, func(j issuedJoin) bool { return now.After(j.Expires) })
	if extra := len(m.Joins) - maxJoins; extra > 0 {
		m.Joins = slices.Delete(m.Joins, 0, extra)
	}
}

// members keeps a member for each zone among the secrets: nobody can write one through the API. Safe for concurrent use.
type members struct {
	keeper *secrets.Keeper
	// forget is secrets.Forgetting.
	forget func() time.Time

	mu     sync.Mutex
	cached map[string]cachedMember // guarded by mu, by zone
}

type cachedMember struct {
	version uint64
	member  *member // never changed
}

func newMembers(keeper *secrets.Keeper, now func() time.Time) *members {
	return &members{keeper: keeper, forget: secrets.Forgetting(now), cached: map[string]cachedMember{}}
}

// get returns what the store has of a zone, nil where it has nothing. The caller must not change it.
func (s *members) get(ctx context.Context, zone string) (*member, uint64, error) {
	name := memberSecret + zone
	version := s.keeper.Version(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if version == 0 {
		delete(s.cached, zone)
		return nil, 0, nil
	}
	if c, ok := s.cached[zone]; ok && c.version == version {
		return c.member, version, nil
	}
	plain, version, err := s.keeper.Get(ctx, name)
	if errors.Is(err, secrets.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	m := &member{}
	if err := json.Unmarshal(plain, m); err != nil || m.Zone != zone {
		return nil, 0, fmt.Errorf("what is kept of zone %s: %w", zone, secrets.ErrDamaged)
	}
	s.cached[zone] = cachedMember{version, m}
	return m, version, nil
}

// update changes what is kept of a zone, durably. change is called again when somebody else wrote in between; its
// error leaves all as it was, and so does errNothing, which is no failure.
func (s *members) update(ctx context.Context, zone string, change func(*member) error) error {
	for {
		old, version, err := s.get(ctx, zone)
		if err != nil {
			return err
		}
		m := old.clone(zone)
		m.tidy(s.forget())
		if err := change(m); errors.Is(err, errNothing) {
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

// drop removes what is kept of a zone, durably, where that is blank.
func (s *members) drop(ctx context.Context, zone string) error {
	for {
		m, version, err := s.get(ctx, zone)
		if err != nil || m == nil || !m.blank() {
			return err
		}
		if err := s.keeper.Delete(ctx, memberSecret+zone, version); !errors.Is(err, secrets.ErrChanged) {
			return err
		}
	}
}

// errNothing: there is nothing to change.
var errNothing = errors.New("nothing to change")

func (m *member) clone(zone string) *member {
	if m == nil {
		return &member{Zone: zone}
	}
	c := *m
	c.Certificates, c.Tokens, c.Joins = slices.Clone(m.Certificates), slices.Clone(m.Tokens), slices.Clone(m.Joins)
	return &c
}

// zones lists whose members there are, deleted ones too.
func (s *members) zones() []string {
	var out []string
	for _, name := range s.keeper.Names() {
		if zone, ok := strings.CutPrefix(name, memberSecret); ok {
			out = append(out, zone)
		}
	}
	return out
}
