package global

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestZoneThatWasNotDeletedComesBack checks a deletion in which the zone's session does not end: the answer is that
// nothing was deleted, and the zone is admitted as before, with or without a credential.
func TestZoneThatWasNotDeletedComesBack(t *testing.T) {
	t.Parallel()
	for name, joined := range map[string]bool{"joined": true, "anonymous": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newZoneAdmin(t)
			if joined {
				s.has(t)
			}
			s.sync.Adopt("zone-1", &tracker.ZoneState{Connected: true, Since: time.Now()}) // it never ends
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := s.remove(ctx, "zone-1"); err == nil {
				t.Fatal("it was deleted")
			}
			if err := s.letsIn(t, joined); err != nil {
				t.Errorf("the zone is not let in: %v", err)
			}
		})
	}
}

// TestDeletionThatWasCutOff checks that a server that stops during a deletion leaves the zone as it was, after a
// minute.
func TestDeletionThatWasCutOff(t *testing.T) {
	t.Parallel()
	for name, joined := range map[string]bool{"joined": true, "anonymous": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newZoneAdmin(t)
			if joined {
				s.has(t)
			}
			begun := func(at time.Time) {
				err := s.registry.Update(t.Context(), "zone-1", func(m *enrolment.Record) error {
					m.Draining, m.DrainingAt = true, at
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			begun(s.now())
			if err := s.letsIn(t, joined); err == nil || !strings.Contains(err.Error(), "deleted") {
				t.Errorf("in the middle of its deletion it is told %v", err)
			}
			begun(s.now().Add(-2 * time.Minute))
			if err := s.letsIn(t, joined); err != nil {
				t.Errorf("the zone is not let in: %v", err)
			}
		})
	}
}

// TestDeletedZoneLeavesWhatItMust checks that credentials stay buried, and that nothing remains of a zone that had and
// needed none, so that its name can be reused.
func TestDeletedZoneLeavesWhatItMust(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ joined, tokens, left bool }{
		"joined":                  {joined: true, left: true},
		"anonymous":               {},
		"a token from elsewhere?": {tokens: true, left: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newZoneAdmin(t)
			s.allowTokens = row.tokens
			if row.joined {
				s.has(t)
			}
			if row.joined {
				s.sees(t)
			}
			if _, err := s.remove(t.Context(), "zone-1"); err != nil {
				t.Fatal(err)
			}
			if seen, err := s.storeOf("zone-1").Seen(t.Context()); err != nil || seen.Word != "" {
				t.Errorf("what was seen of its store is still %s, %v", seen, err)
			}
			m, _, err := s.registry.Get(t.Context(), "zone-1")
			if err != nil || (m != nil) != row.left {
				t.Errorf("of the zone is left %+v, %v; want something: %v", m, err, row.left)
			}
			if err := s.letsIn(t, false); (err == nil) == row.left {
				t.Errorf("without a credential it is told %v", err)
			} else if err != nil && !strings.Contains(err.Error(), "was deleted") {
				t.Errorf("it is told %v, want that it was deleted", err)
			}
		})
	}
}

// sees records that something of the store of zone-1 was seen.
func (s *zoneAdmin) sees(t *testing.T) {
	t.Helper()
	of, seen := s.storeOf("zone-1"), lineage.Seen{Word: "word", At: 1, Most: 2}
	err := of.Accept(t.Context(), "its store")
	if err != nil {
		t.Fatal(err)
	}
	ops, err := of.See(t.Context(), seen)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Apply(t.Context(), store.Batch{Ops: ops}); err != nil {
		t.Fatal(err)
	}
	if got, err := of.Seen(t.Context()); err != nil || got != seen {
		t.Errorf("of its store was seen %s, %v; want %s", got, err, seen)
	}
}

// newZoneAdmin returns the zoneAdmin of zone-1, which neither has nor needs a credential.
func newZoneAdmin(t *testing.T) *zoneAdmin {
	t.Helper()
	a, _ := watched(t)
	a.allowAnonymous, a.allowTokens = true, false
	durable := a.store.(store.Store)
	sync := kds.NewGlobal(kds.GlobalConfig{Store: durable, Replica: "me"})
	status := store.NewMemory()
	s := &zoneAdmin{admission: a, store: durable, sync: sync}
	quiet := slog.New(slog.DiscardHandler)
	s.zones = &zones{
		store: durable, status: status, insights: newInsights(status, "me", nil, quiet), replicas: &replicas{}, sync: sync,
		clones: newClones(time.Now, quiet), log: quiet,
	}
	s.zones.tombstone = s.writeTombstoneIfAdmitted
	return s
}

// has gives the zone a credential.
func (s *zoneAdmin) has(t *testing.T) {
	t.Helper()
	err := s.registry.Update(t.Context(), "zone-1", func(m *enrolment.Record) error {
		m.ID, m.Certificates = "an-id", []enrolment.IssuedCertificate{{Serial: "1", Issued: time.Now(),
			Expires: time.Now().Add(time.Hour), Stored: true}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// letsIn returns the reason why the zone is not admitted, by its credential or without one.
func (s *zoneAdmin) letsIn(t *testing.T, joined bool) error {
	t.Helper()
	if !joined {
		_, err := s.anonymous(t.Context(), "zone-1")
		return err
	}
	m, _, err := s.registry.Get(t.Context(), "zone-1")
	if err != nil {
		return err
	}
	return s.checkAdmitted(m, "zone-1")
}
