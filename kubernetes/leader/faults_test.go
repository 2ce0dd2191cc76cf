package leader

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
	"github.com/causeway-mesh/causeway/server"
)

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/mesh/leases/zone"

func secretPath(suffix string) string { return "/api/v1/namespaces/mesh/secrets/zone-" + suffix }

// pauses ends what a leader does by itself, so that a test does it.
func (l *leading) pauses() {
	l.t.Helper()
	l.stop()
	l.over()
}

// vanishes ends a leader that pauses.
func (l *leading) vanishes() {
	l.t.Helper()
	l.Term.stop(errors.New("killed"))
	l.done.Wait()
	must(l.t, l.store.Close())
}

// spoils makes a Secret what nobody can open, as a later version.
func (c *cluster) spoils(suffix string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	c.objects[secretPath(suffix)] = map[string]any{"metadata": map[string]any{"name": "zone-" + suffix, "resourceVersion": "99"},
		"data": map[string]any{dataKey: []byte("spoilt")}}
}

// TestTheLeaseIsDeleted deletes the Lease of a leader: no other replica leads before that one notices, and numbers of leads
// do not begin again.
func TestTheLeaseIsDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	config := c.config(t, 0)
	for range 3 {
		c.lead(t, config).leaves()
	}
	config.times.renew = time.Hour
	l := c.lead(t, config)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other := c.config(t, 1)
	began := make(chan *Term, 1)
	go func() {
		term, _ := Lead(ctx, other)
		began <- term
	}()
	looksFrom := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.looks
	}
	awaitLooks := func(n int) {
		for deadline := time.Now().Add(20 * time.Second); looksFrom() < n && time.Now().Before(deadline) && len(began) == 0; {
			time.Sleep(time.Millisecond)
		}
	}
	awaitLooks(looksFrom() + 3)
	c.remove(leasePath)
	awaitLooks(looksFrom() + 5)
	cancel()
	if term := <-began; term != nil {
		t.Error("another replica leads beside the first")
		term.Close(t.Context(), nil)
	}
	must(t, l.lease.extend(t.Context()))
	number := l.number
	l.write("a", 1)
	l.dies()
	next := c.lead(t, c.config(t, 1))
	if next.number <= number {
		t.Errorf("the lead after %d has the number %d", number, next.number)
	}
	next.holds(1, "a")
	next.leaves()
}

// TestStaleLeaderChangesNothing lets a leader that was paused, and does not know that another one leads, store what it has.
func TestStaleLeaderChangesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	config := c.config(t, 0)
	config.times.renew = time.Hour
	l := c.lead(t, config)
	l.pauses()
	l.write("a", 1)
	c.expire()
	config = c.config(t, 1)
	config.times.renew = time.Hour
	next := c.lead(t, config)
	next.write("b", 1)
	next.pauses()
	must(t, next.flush(t.Context(), next.store.Snapshot(), all()))
	before := len(c.written())
	if err := l.flush(t.Context(), l.store.Snapshot(), all()); !errors.Is(err, ErrLost) {
		t.Errorf("it stores what it has: %v", err)
	}
	if wrote := c.written()[before:]; len(wrote) > 0 {
		t.Errorf("it wrote %v", wrote)
	}
	l.vanishes()
	next.vanishes()
}

// late is a store to which a change comes after its changes were read.
type late struct {
	store.Reader

	change func()
}

func (l *late) Changes(since uint64) ([]*store.Commit, bool) {
	commits, ok := l.Reader.Changes(since)
	l.change()
	return commits, ok
}

// TestLogKeepsWhatShardsLack writes while the shards are chosen: the log has it until they do.
func TestLogKeepsWhatShardsLack(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	config := c.config(t, 0)
	config.times.renew = time.Hour
	l := c.lead(t, config)
	l.pauses()
	since := l.store.Snapshot().Revision()
	l.write("a", 1)
	work := dirty{shards: map[int]bool{}}
	work.add(&late{Reader: l.store, change: func() { l.write("b", 1) }}, since)
	if shardOf(storetest.Key("a")) == shardOf(storetest.Key("b")) {
		t.Fatal("want keys of two shards")
	}
	must(t, l.flush(t.Context(), l.store.Snapshot(), work))
	l.write("c", 1) // stores the log
	l.vanishes()
	c.expire()
	next := c.lead(t, c.config(t, 1))
	next.holds(3, "a", "b", "c")
	next.leaves()
}

// TestSecretsThatNobodyCanOpen changes Secrets: the leader writes them again, and nothing stops it.
func TestSecretsThatNobodyCanOpen(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	config := c.config(t, 0)
	config.times.renew = time.Hour
	l := c.lead(t, config)
	l.write("a", 1)
	l.pauses()
	c.spoils("log")
	l.write("b", 1)
	for _, suffix := range []string{"core", "log", "store-0", "store-5", "holdings-0"} {
		c.spoils(suffix)
	}
	l.verify(t.Context())
	must(t, l.flush(t.Context(), l.store.Snapshot(), all()))
	l.vanishes()
	c.expire()
	next := c.lead(t, c.config(t, 1))
	next.holds(2, "a", "b")
	next.leaves()
}

// TestWriteAfterAFailedRepair deletes the log, and refuses the writes that would put it back: later ones count.
func TestWriteAfterAFailedRepair(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	config := c.config(t, 0)
	config.times.renew = time.Hour
	l := c.lead(t, config)
	l.write("a", 1)
	l.pauses()
	c.remove(secretPath("log"))
	c.mu.Lock()
	c.readOnly = true
	c.mu.Unlock()
	l.verify(t.Context())
	c.mu.Lock()
	c.readOnly = false
	c.mu.Unlock()
	l.write("b", 1)
	l.vanishes()
}

// TestWhoWaitsIsReady checks what probes see. A StatefulSet restarts the first replica, which begins, once the others are
// ready.
func TestWhoWaitsIsReady(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		why  error
		want int
	}{{nil, http.StatusOK}, {errNotFirst, http.StatusOK}, {errGone, http.StatusServiceUnavailable}} {
		c := newCluster(t)
		config := c.config(t, 1)
		w := &waiting{cfg: config, diagnostics: server.NewDiagnostics(), lease: newLease(&config, nil)}
		w.tell(one.why)
		answer := httptest.NewRecorder()
		w.diagnostics.Handler(&net.TCPAddr{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, server.ReadyPage, http.NoBody))
		if answer.Code != one.want {
			t.Errorf("a replica that waits because of %v answers %d, want %d", one.why, answer.Code, one.want)
		}
	}
}

// TestNoNamespace checks that a replica says why it cannot make a Lease.
func TestNoNamespace(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.mu.Lock()
	c.empty = true
	c.mu.Unlock()
	config := c.config(t, 0)
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: c.kubeconfig, RequestsPerSecond: requests})
	must(t, err)
	l := newLease(&config, client)
	must(t, l.read(t.Context()))
	if ok, err := l.write(t.Context(), l.holder); ok || err == nil {
		t.Errorf("a Lease in no namespace: %v, %v", ok, err)
	}
}

// TestFileSystemsFolder leads in a volume with a folder that only root reads.
func TestFileSystemsFolder(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	config := c.config(t, 0)
	folder := filepath.Join(config.DataDir, ofFileSystem)
	must(t, os.MkdirAll(filepath.Join(folder, "of-root"), 0o700))
	must(t, os.Chmod(folder, 0))
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) }) //nolint:gosec // a folder, for its removal
	for range 2 {
		c.lead(t, config).leaves()
	}
	if _, err := os.Stat(folder); err != nil {
		t.Error(err)
	}
}

// TestToldToEnd ends a process that loses the lead while it ends: a new one would not know that it should.
func TestToldToEnd(t *testing.T) {
	const again = "CAUSEWAY_TEST_AGAIN"
	if os.Getenv(again) != "" {
		t.Fatal("the process was replaced by a new one")
	}
	t.Setenv(again, "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Again(ctx, ErrLost); err != nil {
		t.Error(err)
	}
}

// TestLeadsThatCannotBegin bounds what replicas ask of the API server while a Secret is gone: each pause is longer.
func TestLeadsThatCannotBegin(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.lead(t, c.config(t, 0)).leaves()
	c.remove(secretPath("store-3"))
	config := c.config(t, 1)
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: c.kubeconfig, RequestsPerSecond: requests})
	must(t, err)
	w := &waiting{cfg: config, client: client, lease: newLease(&config, client),
		vault: &vault{client: client, box: config.Box, namespace: "mesh", prefix: "zone", manager: "test", patience: time.Minute}}
	before := w.pause(errGone)
	for range 3 {
		term, err := w.try(t.Context())
		if pause := w.pause(err); term != nil || pause != 2*before {
			t.Fatalf("it leads: %v, %v; the pause after %s is %s", term != nil, err, before, pause)
		}
		before *= 2
	}
}
