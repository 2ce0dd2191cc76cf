package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsRolledBack restores the file of a global's store to an earlier state, in place, as a disk snapshot does:
// the store keeps its name. A zone that has seen more of the store deletes nothing that the store lacks, even if other
// writes have moved the store further by the time they meet, and doctor reports it. What an operator accepts is done.
// After that, the zone syncs normally with the restored store.
func TestFaultsRolledBack(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	link, err := cluster.NewLink(t.Context(), m.global.Address("kds"))
	m.must(err)
	t.Cleanup(func() { _ = link.Close() })
	zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global, Link: link})
	m.must(err)
	m.apply(m.global, timeout("early", "10s"))
	m.arrives(zone, "early")
	file := filepath.Join(m.global.DataDir, "causeway.db")
	m.must(m.global.Stop(t.Context()))
	snapshot, err := os.ReadFile(file)
	m.must(err)
	m.must(m.global.Start(t.Context()))
	m.apply(m.global, timeout("late", "10s"))
	m.arrives(zone, "late")

	m.global.Kill()
	m.must(os.WriteFile(file, snapshot, 0o600))
	link.Set(cluster.Weather{Cut: true})
	m.must(m.global.Start(t.Context()))
	for i := range 30 { // further than the zone has seen
		m.apply(m.global, timeout("early", fmt.Sprintf("%ds", 20+i)))
	}
	m.apply(m.global, timeout("after", "10s"))
	link.Set(cluster.Weather{})
	m.arrives(zone, "after")
	m.holds(m.global, zone, "early", "late", "after")
	m.must(zone.Stop(t.Context()))
	m.must(zone.Start(t.Context()))
	m.must(m.global.Stop(t.Context()))
	m.must(m.global.Start(t.Context()))
	m.holds(m.global, zone, "early", "late", "after")

	m.eventually("an operator to accept what is held", func(ctx context.Context) error {
		_, err := m.CTL(ctx, zone, nil, "zone", "accept-deletes", "zone-1")
		return err
	})
	m.eventually("the zone to have what its global says",
		func(ctx context.Context) error { return sameTimeouts(ctx, m.global, zone) })
	m.noProblems(m.global.API.URL())
	m.must(m.global.Stop(t.Context()))
	m.must(m.global.Start(t.Context()))
	m.apply(m.global, timeout("last", "10s"))
	m.arrives(zone, "last")
	m.noProblems(m.global.API.URL())
}

// rolledBack is a zone on a link, and the file of its global's store from before the policy "late", which the zone has.
type rolledBack struct {
	*mesh
	link     *cluster.Link
	zone     *cluster.Server
	snapshot []byte
}

func newRolledBack(t *testing.T) *rolledBack {
	t.Helper()
	m := &rolledBack{mesh: newMesh(t)}
	var err error
	m.link, err = cluster.NewLink(t.Context(), m.global.Address("kds"))
	m.must(err)
	t.Cleanup(func() { _ = m.link.Close() })
	m.zone, err = m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global, Link: m.link})
	m.must(err)
	m.apply(m.global, timeout("early", "10s"))
	m.arrives(m.zone, "early")
	m.must(m.global.Stop(t.Context()))
	m.snapshot, err = os.ReadFile(m.file(m.global))
	m.must(err)
	m.must(m.global.Start(t.Context()))
	m.apply(m.global, timeout("late", "10s"))
	m.arrives(m.zone, "late")
	return m
}

func (m *rolledBack) file(s *cluster.Server) string { return filepath.Join(s.DataDir, "causeway.db") }

// goesBack rolls back the global's store, which then advances further than the zone has seen before they meet.
func (m *rolledBack) goesBack() {
	m.t.Helper()
	m.global.Kill()
	m.must(os.WriteFile(m.file(m.global), m.snapshot, 0o600))
	m.link.Set(cluster.Weather{Cut: true})
	m.must(m.global.Start(m.t.Context()))
	m.further(m.global)
	m.link.Set(cluster.Weather{})
}

func (m *rolledBack) further(s *cluster.Server) {
	m.t.Helper()
	for i := range 30 {
		m.apply(s, timeout("further", fmt.Sprintf("%ds", 20+i)))
	}
	m.apply(s, timeout("after", "10s"))
}

// TestFaultsRolledBackUnderAKilledZone kills a zone right after it has accepted a policy, and then rolls the global
// back to before that: the zone knows when it saw what it has.
func TestFaultsRolledBackUnderAKilledZone(t *testing.T) {
	t.Parallel()
	m := newRolledBack(t)
	m.zone.Kill()
	m.goesBack()
	m.must(m.zone.Start(t.Context()))
	m.arrives(m.zone, "after")
	m.holds(m.global, m.zone, "early", "late", "after")
}

// TestFaultsBothRolledBack also rolls back the store of a zone, without the record beside it, to a state with a policy
// that the global, rolled back further, lacks.
func TestFaultsBothRolledBack(t *testing.T) {
	t.Parallel()
	m := newRolledBack(t)
	m.zone.Kill()
	of, err := os.ReadFile(m.file(m.zone))
	m.must(err)
	m.must(m.zone.Start(t.Context()))
	m.apply(m.global, timeout("later", "10s"))
	m.arrives(m.zone, "later")
	m.zone.Kill()
	m.must(os.WriteFile(m.file(m.zone), of, 0o600))
	m.must(os.RemoveAll(filepath.Join(m.zone.DataDir, "known")))
	m.goesBack()
	m.must(m.zone.Start(t.Context()))
	m.arrives(m.zone, "after")
	m.holds(m.global, m.zone, "early", "late", "after")
}

// TestFaultsZoneRolledBack rolls the store of a zone back in place, as a disk snapshot does, and lets it advance before
// it meets its global, which was killed right after it had accepted what the zone now lacks. The global keeps that,
// because it has the last copy, and doctor reports it; an operator's acceptance is carried out.
func TestFaultsZoneRolledBack(t *testing.T) {
	t.Parallel()
	m := newRolledBack(t)
	m.zone.Kill()
	snapshot, err := os.ReadFile(m.file(m.zone))
	m.must(err)
	m.must(m.zone.Start(t.Context()))
	m.apply(m.zone, timeout("of-the-zone", "10s"))
	m.arrives(m.global, "of-the-zone")
	m.global.Kill()
	m.zone.Kill()
	m.must(m.global.Start(t.Context()))
	m.must(os.WriteFile(m.file(m.zone), snapshot, 0o600))
	m.link.Set(cluster.Weather{Cut: true})
	m.must(m.zone.Start(t.Context()))
	m.further(m.zone)
	m.link.Set(cluster.Weather{})
	m.arrives(m.global, "after")
	m.eventually("doctor to say what the global holds", func(ctx context.Context) error {
		found, err := m.doctor(ctx, m.global.API.URL())
		if err == nil && !strings.Contains(fmt.Sprint(found), "the removal of 1 MeshTimeout is held") {
			err = fmt.Errorf("it found %+v", found)
		}
		return err
	})
	m.arrives(m.global, "of-the-zone")
	m.eventually("an operator to accept what is held", func(ctx context.Context) error {
		_, err := m.CTL(ctx, m.global, nil, "zone", "accept-deletes", "zone-1")
		return err
	})
	m.leaves(m.global, "of-the-zone")
	m.must(m.zone.Stop(t.Context()))
	m.must(m.zone.Start(t.Context()))
	m.noProblems(m.global.API.URL())
}
