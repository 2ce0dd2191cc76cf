package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// stalled starts a store whose committer waits in a check until release is called, so that others queue up behind it.
func stalled(t *testing.T, s *Store) (release func()) {
	t.Helper()
	taken, free := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		_, err := s.Apply(context.Background(), store.Batch{Check: func(store.Snapshot) error {
			close(taken)
			<-free
			return nil
		}})
		if err != nil {
			t.Error(err)
		}
	})
	<-taken
	return func() {
		close(free)
		done.Wait()
	}
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	deadline := time.After(storetest.Deadline)
	for !condition() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// TestGroupFailsTogether has three writers in one group: one that writes, one that is refused because of it, and one
// whose write changes nothing because of it. If the group fails, all three fail.
func TestGroupFailsTogether(t *testing.T) {
	t.Parallel()
	disk := &failing{}
	s := open(t, Config{Commit: disk.commit})
	release := stalled(t, s)
	r := kilobyte(1, 1)
	batches := []store.Batch{
		storetest.Put(r),
		{Ops: []store.Op{{Put: kilobyte(1, 2), If: store.IfAbsent()}}},
		storetest.Put(r),
	}
	errs := make([]error, len(batches))
	var wg sync.WaitGroup
	for i, b := range batches {
		wg.Go(func() { _, errs[i] = s.Apply(context.Background(), b) })
		waitFor(t, "the queue", func() bool { return s.queue.Len() == i+1 })
	}
	before := s.Snapshot()
	_, next := s.Changed()
	disk.left.Store(1)
	release()
	wg.Wait()
	for i, err := range errs {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("writer %d got %v, want ErrUnavailable", i, err)
		}
	}
	unseen(t, s, before, next)
}

func TestGroupIsOneWrite(t *testing.T) {
	t.Parallel()
	var writes, looks atomic.Int64
	s := open(t, Config{Commit: func(tx *bbolt.Tx) error {
		writes.Add(1)
		return tx.Commit()
	}, Held: func() error {
		looks.Add(1)
		return nil
	}})
	release := stalled(t, s)
	const writers = 50
	var seen atomic.Int64
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			b := storetest.Put(kilobyte(i, 1))
			b.Ops = append(b.Ops, store.Op{Put: kilobyte(writers, i)}) // All write this one; the last one's stays.
			b.Check = func(now store.Snapshot) error {
				n := int64(0)
				for range now.List(store.Query{Type: kilobyte(0, 0).Type}) {
					n++
				}
				n = max(0, n-1)
				if n != seen.Add(1)-1 {
					return fmt.Errorf("sees %d batches before it", n)
				}
				return nil
			}
			if _, err := s.Apply(context.Background(), b); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, "the queue", func() bool { return s.queue.Len() == writers })
	release()
	wg.Wait()
	if writes.Load() != 1 || s.Snapshot().Revision() != writers {
		t.Errorf("got %d writes to disk and revision %d", writes.Load(), s.Snapshot().Revision())
	}
	if looks.Load() != 2 {
		t.Errorf("looked for the folder %d times, want once for the batch that stalled and once for the group", looks.Load())
	}
	reopened(t, s)
}

func TestFullQueue(t *testing.T) {
	t.Parallel()
	s := open(t, Config{QueueSize: 1})
	release := stalled(t, s)
	var wg sync.WaitGroup
	wg.Go(func() { storetest.Apply(t, s, storetest.Put(kilobyte(1, 1))) })
	waitFor(t, "the queue", func() bool { return s.queue.Len() == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := s.Apply(ctx, storetest.Put(kilobyte(2, 1))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("in front of the queue: got %v, want the context's error", err)
	}
	release()
	wg.Wait()
	if s.Snapshot().Revision() != 1 {
		t.Errorf("got revision %d, want 1", s.Snapshot().Revision())
	}
}

func TestGivingUpInTheQueue(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	release := stalled(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() {
		_, err := s.Apply(ctx, storetest.Put(kilobyte(1, 1)))
		result <- err
	}()
	waitFor(t, "the queue", func() bool { return s.queue.Len() == 1 })
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	release()
	storetest.Apply(t, s, storetest.Put(kilobyte(2, 1)))
	if s.Snapshot().Get(kilobyte(1, 1).Key) != nil {
		t.Error("the batch that was given up was applied")
	}
}

func TestCloseWithAQueue(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	release := stalled(t, s)
	const writers = 20
	results := make(chan error, writers)
	for i := range writers {
		go func() {
			_, err := s.Apply(context.Background(), storetest.Put(kilobyte(i, 1)))
			results <- err
		}()
	}
	waitFor(t, "the queue", func() bool { return s.queue.Len() == writers })
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	<-s.queue.Stopped()
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	for range writers {
		if err := <-results; !errors.Is(err, store.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
	reopened(t, s)
}
