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

// TestFaultsEtcdRolledBack is TestFaultsRolledBack for an etcd whose folder is restored while its replica does not run.
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
