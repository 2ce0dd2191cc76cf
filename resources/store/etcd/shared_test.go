package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

const patience = time.Minute

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	start := time.Now()
	for !condition() {
		waited := time.Since(start)
		if waited > patience {
			t.Fatalf("after %s still not: %s", patience, what)
		}
		time.Sleep(min(max(waited/20, 5*time.Millisecond), 50*time.Millisecond))
	}
}

// all lists what the tests write.
func all(s store.Reader) []*resources.Resource {
	return slices.Collect(s.Snapshot().List(store.Query{Type: resources.TypeMeshTimeout}))
}

// agree waits until all stores show the same at the same revision.
func agree(t *testing.T, stores ...*Store) {
	t.Helper()
	eventually(t, "all servers show the same", func() bool {
		first := stores[0].Snapshot()
		for _, s := range stores[1:] {
			if s.Snapshot().Revision() != first.Revision() || !slices.EqualFunc(all(s), all(stores[0]), storetest.Equal) {
				return false
			}
		}
		return true
	})
}

func several(t *testing.T, n int, config Config) []*Store {
	t.Helper()
	config.Prefix = fmt.Sprintf("/shared-%d", shared.prefixes.Add(1))
	var out []*Store
	for range n {
		out = append(out, open(t, config))
	}
	return out
}

// TestServersCountTogether has three servers increment one counter by conditional writes: each success counts once.
func TestServersCountTogether(t *testing.T) {
	t.Parallel()
	stores := several(t, 3, Config{Endpoints: etcdtest.Start(t, 1).Endpoints()})
	storetest.Apply(t, stores[0], storetest.Put(storetest.Resource(storetest.Key("counter"), 0, nil)))
	agree(t, stores...)
	const each = 25
	var wg sync.WaitGroup
	for _, s := range stores {
		wg.Go(func() {
			for range each {
				if err := countUp(s); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	agree(t, stores...)
	got := stores[0].Snapshot().Get(storetest.Key("counter"))
	if want := storetest.Spec(resources.TypeMeshTimeout, len(stores)*each); !got.Spec.Equal(want) {
		t.Errorf("counted to %s, want %s", got.Spec.JSON(), want.JSON())
	}
}

func countUp(s *Store) error {
	for {
		old := s.Snapshot().Get(storetest.Key("counter"))
		var n int
		if _, err := fmt.Sscanf(string(old.Spec.JSON()), `{"content":%d`, &n); err != nil {
			return err
		}
		c, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: storetest.Resource(old.Key, n+1, nil),
			If: store.IfRevision(old.Revision)}}})
		switch {
		case errors.Is(err, store.ErrConflict):
			// The other server's write is already in the view: that is why this one was refused.
			continue
		case err != nil:
			return err
		case s.Snapshot().Revision() < c.Revision:
			return fmt.Errorf("revision %d was acknowledged and is not visible", c.Revision)
		}
		return nil
	}
}

// TestChecksHoldAcrossServers checks that a check of one server sees what another has just written.
func TestChecksHoldAcrossServers(t *testing.T) {
	t.Parallel()
	stores := several(t, 4, Config{Endpoints: etcdtest.Start(t, 1).Endpoints()})
	const most = 5
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() {
			for n := range 10 {
				_, err := s.Apply(context.Background(), store.Batch{
					Ops: storetest.Put(storetest.Resource(storetest.Key(fmt.Sprintf("r-%d-%d", i, n)), n, nil)).Ops,
					Check: func(now store.Snapshot) error {
						if count := len(slices.Collect(now.List(store.Query{Type: resources.TypeMeshTimeout}))); count >= most {
							return errFull
						}
						return nil
					},
				})
				if err != nil && !errors.Is(err, errFull) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	agree(t, stores...)
	if n := len(all(stores[0])); n != most {
		t.Errorf("%d resources, the checks allow %d", n, most)
	}
}

var errFull = errors.New("full")

// TestCutBatchIsSeenWhole checks that a batch of many parts is one commit on every server, with no writes in between.
func TestCutBatchIsSeenWhole(t *testing.T) {
	t.Parallel()
	stores := several(t, 2, Config{Endpoints: etcdtest.Start(t, 1).Endpoints(), MaxOps: 7})
	const size = 100
	batch := func(content int) store.Batch {
		var b store.Batch
		for i := range size {
			b.Ops = append(b.Ops, store.Op{Put: storetest.Resource(storetest.Key(fmt.Sprintf("r%03d", i)), content, nil)})
		}
		return b
	}
	done := make(chan struct{})
	var readers, writers sync.WaitGroup
	for _, s := range stores {
		readers.Go(func() {
			for {
				_, next := s.Changed()
				now := all(s)
				for _, r := range now {
					if len(now) != size || !r.Spec.Equal(now[0].Spec) || r.Revision != now[0].Revision {
						t.Errorf("%d resources, of %s at %d and %s at %d", len(now), now[0].Spec.JSON(),
							now[0].Revision, r.Spec.JSON(), r.Revision)
						return
					}
				}
				select {
				case <-next:
				case <-done:
					return
				}
			}
		})
		writers.Go(func() {
			for i := range 10 {
				if _, err := s.Apply(context.Background(), batch(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	agree(t, stores...)
	close(done)
	readers.Wait()
}

// TestWriterDiesBetweenParts simulates a server that is killed after the first part of a batch: others wait for its
// lease, show what there is, and continue.
func TestWriterDiesBetweenParts(t *testing.T) {
	t.Parallel()
	stores := several(t, 2, Config{Endpoints: etcdtest.Start(t, 1).Endpoints(), WriterLease: time.Second})
	s, other := stores[0], stores[1]
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("before"), 1, nil)))
	at, value := s.place.mark()
	w := writing{store: s, expected: at, value: value, head: head{Revision: 2, Part: 1, Parts: 3, Writer: "dead"}}
	if err := w.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	orphan := storetest.Resource(storetest.Key("orphan"), 1, nil)
	orphan.Revision = 2
	op, _, err := s.op(orphan.Key, orphan)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.put(t.Context(), part{ops: []clientv3.Op{op}}); err != nil {
		t.Fatal(err)
	}
	if c := storetest.Apply(t, other, storetest.Put(storetest.Resource(storetest.Key("after"), 1, nil))); c.Revision != 3 {
		t.Errorf("the next write got revision %d, want 3", c.Revision)
	}
	agree(t, stores...)
	if s.Snapshot().Get(orphan.Key) == nil {
		t.Error("the part that was written is not shown")
	}
	if late := open(t, s.config); late.Snapshot().Revision() != 3 || len(all(late)) != 3 {
		t.Errorf("a new server is at %d with %d resources", late.Snapshot().Revision(), len(all(late)))
	}
}
