package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsEtcdRolledBack is the same test for an etcd whose folder is restored while its replica does not run.
func TestFaultsEtcdRolledBack(t *testing.T) {
	t.Parallel()
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

// TestFaultsEtcdRolledBackBesideAPausedReplica rolls etcd back to before writes that a paused replica has not seen, and
// that the other one has sent to a zone. The paused one continues unaware, and writes further than the zone has seen.
// The zone, which moves to it, deletes nothing of what was lost, even if etcd's history of that time is gone, or if its
// new replica has started since and has nothing to compare with.
func TestFaultsEtcdRolledBackBesideAPausedReplica(t *testing.T) {
	t.Parallel()
	for _, of := range []rolledBackEtcd{{name: "history"}, {name: "compacted", compacted: true},
		{name: "compacted, and the replica is a new one", compacted: true, fresh: true}} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			of.besideAPausedReplica(t)
		})
	}
}

// rolledBackEtcd is what happens after the rollback: etcd's history is compacted, and another replica replaces the one
// that continued.
type rolledBackEtcd struct {
	name             string
	compacted, fresh bool
}

func (of rolledBackEtcd) besideAPausedReplica(t *testing.T) {
	t.Helper()
	r := &replicated{etcd: etcdtest.Start(t, 1)}
	r.mesh = newCluster(t)
	member := r.etcd.Members[0]
	global := func(name string, more ...string) *cluster.Server {
		s, err := r.StartGlobal(t.Context(), cluster.GlobalConfig{Name: name,
			Args: append(more, "--store", "etcd", "--etcd-endpoints", member.Endpoint)})
		r.must(err)
		return s
	}
	r.global = global("sends")
	paused := global("pauses", "--secrets-key-file", filepath.Join(r.global.DataDir, "secrets.key"))
	link, err := cluster.NewLink(t.Context(), r.global.Address("kds"))
	r.must(err)
	t.Cleanup(func() { _ = link.Close() })
	zone, err := r.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: r.global, Link: link})
	r.must(err)
	r.apply(r.global, timeout("early", "10s"))
	r.arrives(zone, "early")
	r.arrives(paused, "early")
	paused.Pause()
	kept := filepath.Join(r.Dir(), "kept")
	member.Kill()
	r.must(os.CopyFS(kept, os.DirFS(member.Folder())))
	member.Start(t)
	member.Ready(t)
	r.eventually("the other replica to have etcd again", func(ctx context.Context) error {
		_, err := r.global.Diagnostics(ctx, "/readyz")
		return err
	})
	r.apply(r.global, timeout("late", "10s"))
	r.arrives(zone, "late")

	r.global.Kill()
	member.Kill()
	r.must(os.RemoveAll(member.Folder()))
	r.must(os.CopyFS(member.Folder(), os.DirFS(kept)))
	member.Start(t)
	member.Ready(t)
	paused.Resume()
	r.eventually("the paused replica to write", func(ctx context.Context) error {
		_, err := r.CTL(ctx, paused, strings.NewReader(timeout("further", "10s")), "apply", "-f", "-")
		return err
	})
	for i := range 30 {
		r.apply(paused, timeout("further", fmt.Sprintf("%ds", 20+i)))
	}
	r.apply(paused, timeout("after", "10s"))
	if of.compacted {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{member.Endpoint}, Logger: zap.NewNop()})
		r.must(err)
		defer client.Close()
		last, err := client.Get(t.Context(), "/")
		r.must(err)
		_, err = client.Compact(t.Context(), last.Header.Revision)
		r.must(err)
	}
	last := paused
	if of.fresh {
		last = global("begins", "--secrets-key-file", filepath.Join(r.global.DataDir, "secrets.key"))
		r.must(paused.Stop(t.Context()))
	}
	link.Lead(last.Address("kds"))
	r.arrives(zone, "after")
	r.holds(last, zone, "early", "late", "after")
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
