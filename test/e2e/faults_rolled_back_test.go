package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsRolledBack: the store's file of a global is put back to what it was, in place, as by a snapshot of its disk: it keeps its name. A
// zone that has seen more of it deletes nothing for what it lacks, although it has come further by other writes when they meet, and doctor
// says so. What an operator accepts is done, and with the store as it is from then on the zone goes as with any.
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
	m.eventually("the zone to have what its global says", func(ctx context.Context) error { return sameTimeouts(ctx, m.global, zone) })
	m.noProblems(m.global.API.URL())
	m.must(m.global.Stop(t.Context()))
	m.must(m.global.Start(t.Context()))
	m.apply(m.global, timeout("last", "10s"))
	m.arrives(zone, "last")
	m.noProblems(m.global.API.URL())
}
