package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// testConcurrentWriters increments one resource by optimistic writes of many writers: each success must count once.
func testConcurrentWriters(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	const writers, each = 8, 20
	Apply(t, s, Put(Resource(Key("counter"), 0, nil)))
	var wg sync.WaitGroup
	for range writers {
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
	if got, want := s.Snapshot().Get(Key("counter")),
		Spec(resources.TypeMeshTimeout, writers*each); !got.Spec.Equal(want) {
		t.Errorf("got %s, want %s", got.Spec.JSON(), want.JSON())
	}
	if s.Snapshot().Revision() != writers*each+1 {
		t.Errorf("got revision %d, want %d", s.Snapshot().Revision(), writers*each+1)
	}
}

func countUp(s store.Store) error {
	for {
		old := s.Snapshot().Get(Key("counter"))
		n, err := content(old)
		if err != nil {
			return err
		}
		op := store.Op{Put: Resource(old.Key, n+1, nil), If: store.IfRevision(old.Revision)}
		c, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{op}})
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		if s.Snapshot().Revision() < c.Revision {
			return fmt.Errorf("revision %d was acknowledged and is not visible", c.Revision)
		}
		return nil
	}
}

func content(r *resources.Resource) (n int, err error) {
	_, err = fmt.Sscanf(string(r.Spec.JSON()), `{"content":%d`, &n)
	return n, err
}

// testConcurrentReaders writes batches that give two resources the same content: no reader may ever see them differ.
// Readers read many times in a row and then rest, so that they leave the processor to the writers and to etcd.
func testConcurrentReaders(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	left, right := Key("left"), Key("right")
	pair := func(n int) store.Batch {
		labels := map[string]string{"n": fmt.Sprint(n % 3)}
		return store.Batch{Ops: []store.Op{{Put: Resource(left, n, labels)}, {Put: Resource(right, n, labels)}}}
	}
	Apply(t, s, pair(0))
	done := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			rest := time.NewTicker(time.Millisecond)
			defer rest.Stop()
			last := uint64(0)
			for look := 1; ; look++ {
				if look%20 == 0 {
					select {
					case <-done:
						return
					case <-rest.C:
					}
				}
				now := s.Snapshot()
				l, r := now.Get(left), now.Get(right)
				if !l.Spec.Equal(r.Spec) || l.Revision != r.Revision || now.Revision() < last || l.Revision > now.Revision() {
					t.Errorf("at %d (before %d): left %s@%d, right %s@%d", now.Revision(), last, l.Spec.JSON(),
						l.Revision, r.Spec.JSON(), r.Revision)
					return
				}
				if n := names(now, store.Query{Type: left.Type, Labels: l.Labels}); len(n) != 2 {
					t.Errorf("at %d: the label's index has %v", now.Revision(), n)
					return
				}
				last = now.Revision()
			}
		})
	}
	for w := range 4 {
		writers.Go(func() {
			for i := range 50 {
				if _, err := s.Apply(context.Background(), pair(1+w+4*i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// testFollow follows the changelog while others write: the changes together must make up the state.
func testFollow(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	const writers, each = 4, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				k := Key(fmt.Sprint("r", (w*7+i)%10))
				b := Put(Resource(k, w*each+i, nil))
				if i%5 == 4 {
					b = Delete(k)
				}
				if _, err := s.Apply(context.Background(), b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()

	state, at := map[resources.Key]*resources.Resource{}, uint64(0)
	for running := true; running; {
		revision, next := s.Changed()
		if revision == at {
			select {
			case <-next:
			case <-finished:
				now, _ := s.Changed()
				running = now != at
			}
			continue
		}
		commits, ok := s.Changes(at)
		if !ok || len(commits) == 0 {
			t.Fatalf("changes since %d: %d, %t", at, len(commits), ok)
		}
		for _, c := range commits {
			if c.Revision <= at {
				t.Fatalf("revision %d after %d", c.Revision, at)
			}
			at = c.Revision
			for _, change := range c.Changes {
				if !Equal(state[change.Key()], change.Old) {
					t.Fatalf("revision %d: the old state of %s is not the one before", at, change.Key())
				}
				state[change.Key()] = change.New
			}
		}
	}
	wg.Wait()
	for k, r := range state {
		if !Equal(s.Snapshot().Get(k), r) {
			t.Errorf("%s differs", k)
		}
	}
}
