package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsEtcdRolledBack is the same test for an etcd whose folder is restored while its replica does not run.
func TestFaultsEtcdRolledBack(t *testing.T) {
	r := &replicated{etcd: etcdtest.Start(t, 1)}
	r.mesh = newCluster(t)
	member := r.etcd.Members[0]
	var err error
	r.global, err = r.StartGlobal(t.Context(),
		cluster.GlobalConfig{Args: []string{"--store", "etcd", "--etcd-endpoints", member.Endpoint}})
	r.must(err)
	link, err := cluster.NewLink(t.Context(), r.global.Address("kds"))
	r.must(err)
	t.Cleanup(func() { _ = link.Close() })
	zone, err := r.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: r.global, Link: link})
	r.must(err)
	r.apply(r.global, timeout("early", "10s"))
	r.arrives(zone, "early")
	kept := filepath.Join(r.Dir(), "kept")
	move := func(from, to string) {
		member.Kill()
		r.must(os.RemoveAll(to))
		r.must(os.CopyFS(to, os.DirFS(from)))
		member.Start(t)
		member.Ready(t)
	}
	r.global.Kill()
	move(member.Folder(), kept)
	r.must(r.global.Start(t.Context()))
	r.apply(r.global, timeout("late", "10s"))
	r.arrives(zone, "late")

	r.global.Kill()
	link.Set(cluster.Weather{Cut: true})
	move(kept, member.Folder())
	r.must(r.global.Start(t.Context()))
	for i := range 30 {
		r.apply(r.global, timeout("early", fmt.Sprintf("%ds", 20+i)))
	}
	r.apply(r.global, timeout("after", "10s"))
	link.Set(cluster.Weather{})
	r.arrives(zone, "after")
	r.holds(r.global, zone, "early", "late", "after")
}

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
