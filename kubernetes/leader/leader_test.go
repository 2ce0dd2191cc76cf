package leader

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// leading is a replica that leads, with its store.
type leading struct {
	*Term

	c     *cluster
	t     *testing.T
	store *backend.Store
	stop  context.CancelFunc
	ended chan error
}

// lead waits for the lead of a replica, and starts it on its folder.
func (c *cluster) lead(t *testing.T, config Config) *leading {
	t.Helper()
	term, err := Lead(t.Context(), config)
	must(t, err)
	l := &leading{Term: term, c: c, t: t, ended: make(chan error, 1)}
	l.store, err = backend.Open(t.Context(), backend.Config{Path: config.StoreFile, Held: term.Held, Keep: term.Keep, Log: config.Log})
	must(t, err)
	must(t, term.Start(t.Context(), l.store))
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	go func() { l.ended <- term.Run(ctx, l.store) }()
	return l
}

// over waits until the lead ended.
func (l *leading) over() {
	l.t.Helper()
	l.t.Logf("the lead ended: %v", <-l.ended)
}

// dies ends a replica as kill -9 does: it stores nothing more, and leaves the Lease.
func (l *leading) dies() {
	l.t.Helper()
	l.Term.stop(errors.New("killed"))
	l.done.Wait()
	l.stop()
	l.over()
	must(l.t, l.store.Close())
	l.c.expire()
}

// leaves ends a replica as SIGTERM does.
func (l *leading) leaves() {
	l.t.Helper()
	l.stop()
	l.over()
	must(l.t, l.store.Close())
	l.Close(context.Background(), l.store)
}

func (l *leading) write(name string, value int) {
	l.t.Helper()
	storetest.Apply(l.t, l.store, storetest.Put(storetest.Resource(storetest.Key(name), value, nil)))
}

// holds compares the store with the names, at a revision.
func (l *leading) holds(revision uint64, names ...string) {
	l.t.Helper()
	got := map[string]bool{}
	for r := range store.All(l.store.Snapshot()) {
		got[r.Name] = true
	}
	for _, name := range names {
		if !got[name] {
			l.t.Errorf("%s is lost", name)
		}
	}
	if len(got) != len(names) || l.store.Snapshot().Revision() != revision {
		l.t.Errorf("the store holds %v at %d, want %v at %d", got, l.store.Snapshot().Revision(), names, revision)
	}
}

// TestNothingIsLost kills leaders in turn: each next one has every write that was answered, at its revision, and the
// files.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first := c.config(t, 0)
	l := c.lead(t, first)
	must(t, os.MkdirAll(filepath.Join(first.DataDir, "membership"), 0o700))
	must(t, os.WriteFile(filepath.Join(first.DataDir, "membership", "credential.sealed"), []byte("held"), 0o600))
	must(t, os.WriteFile(filepath.Join(first.DataDir, "audit"), []byte("own"), 0o600))
	must(t, l.KeepFiles())
	l.write("a", 1)
	l.write("b", 1)
	l.write("b", 2)
	storetest.Apply(t, l.store, store.Batch{Ops: []store.Op{{Delete: storetest.Key("a")}}})
	l.dies()

	second := c.config(t, 1)
	l = c.lead(t, second)
	l.holds(4, "b")
	raw, err := os.ReadFile(filepath.Join(second.DataDir, "membership", "credential.sealed"))
	if string(raw) != "held" {
		t.Errorf("the membership is %q, %v", raw, err)
	}
	if _, err := os.Stat(filepath.Join(second.DataDir, "audit")); err == nil {
		t.Error("the audit log of one replica is in another")
	}
	for pod, want := range map[string]any{"zone-0": nil, "zone-1": "true"} {
		labels, _ := c.object("/api/v1/namespaces/mesh/pods/" + pod)["metadata"].(map[string]any)["labels"].(map[string]any)
		if labels[LabelLeader] != want {
			t.Errorf("the label of %s is %v, want %v", pod, labels[LabelLeader], want)
		}
	}
	l.write("c", 1)
	l.leaves()
	l = c.lead(t, first)
	l.holds(5, "b", "c")
	l.leaves()
}

// TestLeaderWithoutTheLease takes the API server away: the leader stops before another may begin, and writes nothing
// more.
func TestLeaderWithoutTheLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	config := c.config(t, 0)
	config.times.safe = 5 * time.Second
	l := c.lead(t, config)
	c.setAway(true)
	ctx, cancel := l.Context(t.Context())
	defer cancel()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), ErrLost) || !errors.Is(l.Held(), ErrLost) {
		t.Errorf("it ends with %v, and is held: %v", context.Cause(ctx), l.Held())
	}
	if _, err := l.store.Apply(t.Context(), storetest.Put(storetest.Resource(storetest.Key("late"), 1, nil))); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("it writes: %v", err)
	}
	c.setAway(false)
	writes := len(c.written())
	l.stop()
	l.over()
	must(t, l.store.Close())
	l.Close(t.Context(), l.store)
	if all := c.written(); len(all) != writes {
		t.Errorf("it wrote %v", all[writes:])
	}
}

// TestLaterLeaderIsFinal lets a leader, whose clock says that it leads, write after another has begun.
func TestLaterLeaderIsFinal(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := c.lead(t, c.config(t, 0))
	l.write("a", 1)
	o := c.object("/api/v1/namespaces/mesh/secrets/zone-log")
	box := l.cfg.Box
	c.mu.Lock()
	plain, err := (&content{Term: l.number + 1, Revision: 9}).pack()
	must(t, err)
	sealed, err := box.Seal(plain, "replicas log")
	must(t, err)
	o["data"] = map[string]any{dataKey: sealed}
	o["metadata"].(map[string]any)["resourceVersion"] = "later"
	c.mu.Unlock()
	if _, err := l.store.Apply(t.Context(), storetest.Put(storetest.Resource(storetest.Key("late"), 1, nil))); !errors.Is(err, ErrLost) {
		t.Errorf("it writes: %v", err)
	}
	if l.store.Snapshot().Get(storetest.Key("late")) != nil {
		t.Error("it shows what it did not store")
	}
	l.stop()
	l.over()
	must(t, l.store.Close())
	l.Close(t.Context(), l.store)
}

// TestNobodyBeginsAnew deletes Secrets: a leader writes them again, and without one no replica begins.
func TestNobodyBeginsAnew(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := c.lead(t, c.config(t, 0))
	l.write("a", 1)
	l.dies()
	for _, gone := range []string{"core", "log", "store-3"} {
		path := "/api/v1/namespaces/mesh/secrets/zone-" + gone
		kept := c.object(path)
		c.remove(path)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		config := c.config(t, 0)
		if term, err := Lead(ctx, config); term != nil || err != nil {
			t.Errorf("without %s there is a leader: %v", gone, err)
		}
		cancel()
		if _, err := os.Stat(config.StoreFile); err == nil {
			t.Errorf("without %s it begins anew", gone)
		}
		c.mu.Lock()
		c.objects[path] = kept
		c.mu.Unlock()
	}
	l = c.lead(t, c.config(t, 1))
	l.holds(1, "a")
	l.leaves()
}

// TestOnlyTheFirstBegins checks that a second replica waits where nothing is stored: the first may have a volume with
// keys.
func TestOnlyTheFirstBegins(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if term, err := Lead(ctx, c.config(t, 1)); term != nil || err != nil {
		t.Fatalf("the second begins: %v", err)
	}
	// The first has what a server without replicas left.
	config := c.config(t, 0)
	must(t, os.MkdirAll(config.DataDir, 0o700))
	alone, err := backend.Open(t.Context(), backend.Config{Path: config.StoreFile})
	must(t, err)
	storetest.Apply(t, alone, storetest.Put(storetest.Resource(storetest.Key("old"), 1, nil)))
	must(t, alone.Close())
	c.lead(t, config).dies()
	l := c.lead(t, c.config(t, 1))
	l.holds(1, "old")
	l.leaves()
}

// TestLogIsTrimmed checks that the log does not grow with what the shards have.
func TestLogIsTrimmed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := c.lead(t, c.config(t, 0))
	for i := range 50 {
		l.write(strings.Repeat("a", i+1), i)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		l.mu.Lock()
		n := len(l.log)
		l.mu.Unlock()
		if n == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log has %d entries", n)
		}
		time.Sleep(10 * time.Millisecond)
	}
	l.write("last", 1)
	l.dies()
	next := c.lead(t, c.config(t, 1))
	if got := next.store.Snapshot().Get(resources.Key{Type: storetest.Key("last").Type, Mesh: storetest.Key("last").Mesh, Name: "last"}); got == nil && next.store.Snapshot().Get(storetest.Key("last")) == nil {
		t.Error("the last is lost")
	}
	if n := len(func() (all []string) {
		for r := range store.All(next.store.Snapshot()) {
			all = append(all, r.Name)
		}
		return all
	}()); n != 51 {
		t.Errorf("there are %d resources, want 51", n)
	}
	next.leaves()
}

// TestFolderOfReplicasStartsNotAlone checks that a server without a Lease does not start on a folder that replicas have
// used, also one that a later leader has filled.
func TestFolderOfReplicasStartsNotAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first, second := c.config(t, 0), c.config(t, 1)
	if err := Alone(first.DataDir); err != nil {
		t.Error(err)
	}
	l := c.lead(t, first)
	l.write("a", 1)
	l.dies()
	l = c.lead(t, second)
	l.leaves()
	for _, config := range []Config{first, second} {
		if err := Alone(config.DataDir); !errors.Is(err, ErrShared) || !strings.Contains(err.Error(), `"zone"`) {
			t.Errorf("it may start: %v", err)
		}
	}
}

// TestPeers checks that a leader knows the pods of the replicas, and says when it does not.
func TestPeers(t *testing.T) {
	t.Parallel()
	c, began := newCluster(t), time.Now()
	since := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	c.mu.Lock()
	c.objects["/api/v1/namespaces/mesh/pods/zone-1"]["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True",
		"lastTransitionTime": since.Format(time.RFC3339)}}}
	c.objects["/api/v1/namespaces/mesh/pods/other-0"] = map[string]any{"metadata": map[string]any{"name": "other-0", "namespace": "mesh"}}
	c.mu.Unlock()
	l := c.lead(t, c.config(t, 0))
	want := []Peer{{Pod: "zone-0", Leads: true}, {Pod: "zone-1", Ready: true, Since: since}, {Pod: "zone-2"}}
	if got, err := l.Peers(); err != nil || !slices.Equal(got, want) {
		t.Errorf("the replicas are %+v, %v, want %+v", got, err, want)
	}
	if name, since := l.Lease(); name != "zone" || since.Before(began) {
		t.Errorf("it leads by %q since %s", name, since)
	}
	c.setAway(true)
	if _, err := l.look(t.Context()); err == nil {
		t.Error("the pods can be listed without the API server")
	}
	if got, err := l.Peers(); err == nil || got != nil {
		t.Errorf("without the API server it still knows %+v", got)
	}
	c.setAway(false)
	l.leaves()
}
