package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// TestAway checks that without etcd reads continue, writes fail with the reason, and the store recovers by itself.
func TestAway(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := open(t, Config{Endpoints: c.Endpoints(), Timeout: 500 * time.Millisecond})
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("kept"), 1, nil)))
	c.Members[0].Kill()
	eventually(t, "the store knows that etcd is away", func() bool { return errors.Is(s.Healthy(), store.ErrUnavailable) })
	_, err := s.Apply(t.Context(), storetest.Put(storetest.Resource(storetest.Key("lost"), 1, nil)))
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUncertain) {
		t.Errorf("a write that was not tried: %v", err)
	}
	if s.Snapshot().Get(storetest.Key("kept")) == nil || s.Snapshot().Get(storetest.Key("lost")) != nil {
		t.Error("the view changed")
	}
	c.Members[0].Start(t)
	eventually(t, "the store is well again", func() bool { return s.Healthy() == nil })
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("after"), 1, nil)))
}

// TestFrozen checks that a cluster that accepts connections and does not answer costs a writer no more than the
// timeout.
func TestFrozen(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := open(t, Config{Endpoints: c.Endpoints(), Timeout: 500 * time.Millisecond})
	c.Members[0].Freeze(t)
	defer c.Members[0].Thaw()
	_, err := s.Apply(t.Context(), storetest.Put(storetest.Resource(storetest.Key("a"), 1, nil)))
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	c.Members[0].Thaw()
	eventually(t, "the store is well again", func() bool { return s.Healthy() == nil })
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("a"), 2, nil)))
}

// TestCompacted checks that a server that was cut off for longer than etcd's history compares everything.
func TestCompacted(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 3)
	prefix := "/compacted"
	s := open(t, Config{Endpoints: c.Endpoints()[:2], Prefix: prefix})
	cutOff := open(t, Config{Endpoints: c.Endpoints()[2:], Prefix: prefix})
	for i := range 20 {
		storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key(fmt.Sprint("r", i)), 0, nil)))
	}
	agree(t, s, cutOff)
	c.Members[2].Kill()
	eventually(t, "it is cut off", func() bool { return cutOff.Healthy() != nil })
	for i := range 10 {
		storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key(fmt.Sprint("r", i)), 1, nil)))
		storetest.Apply(t, s, store.Batch{Ops: []store.Op{{Delete: storetest.Key(fmt.Sprint("r", 19-i))}}})
	}
	if _, err := s.client.Compact(t.Context(), s.place.seen()); err != nil {
		t.Fatal(err)
	}
	c.Members[2].Start(t)
	agree(t, s, cutOff)
	storetest.Apply(t, cutOff, storetest.Put(storetest.Resource(storetest.Key("after"), 1, nil)))
	agree(t, s, cutOff)
}

// TestWentBack checks that a server does not write to a cluster that lost writes that the server has seen.
func TestWentBack(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	s := open(t, Config{Endpoints: c.Endpoints(), Timeout: 500 * time.Millisecond})
	for i := range 5 {
		storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key(fmt.Sprint("r", i)), 1, nil)))
	}
	c.Members[0].Wipe(t)
	eventually(t, "the store notices", func() bool { return errors.Is(s.Healthy(), ErrWentBack) })
	_, err := s.Apply(t.Context(), storetest.Put(storetest.Resource(storetest.Key("r1"), 2, nil)))
	if !errors.Is(err, ErrWentBack) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// TestMembersKilledInTurn kills any member while two servers write: in the end, what was acknowledged is there, and
// what was refused for certain is not.
func TestMembersKilledInTurn(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 3)
	stores := several(t, 2, Config{Endpoints: c.Endpoints(), Timeout: 2 * time.Second})
	stop := make(chan struct{})
	var writers sync.WaitGroup
	ledgers := make([]ledger, len(stores))
	for i, s := range stores {
		writers.Go(func() { ledgers[i] = writeUntil(stop, s, fmt.Sprintf("w%d", i)) })
	}
	for _, m := range c.Members {
		revision := stores[0].Snapshot().Revision()
		m.Kill()
		eventually(t, "writes go on without the member", func() bool { return stores[0].Snapshot().Revision() > revision+20 })
		m.Start(t)
	}
	close(stop)
	writers.Wait()
	agree(t, stores...)
	for i := range ledgers {
		ledgers[i].check(t, stores[i])
	}
}

// ledger is the model: what each key must, or may, have.
type ledger struct {
	acknowledged map[resources.Key]int
	uncertain    map[resources.Key][]int
	writes       int
}

// writeUntil writes ascending numbers to a few keys, at most 500 times a second: more is work for the processor and
// shows nothing more.
func writeUntil(stop <-chan struct{}, s *Store, name string) ledger {
	l := ledger{acknowledged: map[resources.Key]int{}, uncertain: map[resources.Key][]int{}}
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-stop:
			return l
		case <-pace.C:
		}
		l.writes++
		key := storetest.Key(fmt.Sprintf("%s-%d", name, l.writes%7))
		_, err := s.Apply(context.Background(), storetest.Put(storetest.Resource(key, l.writes, nil)))
		switch {
		case err == nil:
			l.acknowledged[key] = l.writes
			l.uncertain[key] = nil
		case errors.Is(err, store.ErrUncertain):
			l.uncertain[key] = append(l.uncertain[key], l.writes)
		}
	}
}

func (l *ledger) check(t *testing.T, s *Store) {
	t.Helper()
	for key, n := range l.acknowledged {
		got := s.Snapshot().Get(key)
		may := append([]int{n}, l.uncertain[key]...)
		found := false
		for _, m := range may {
			found = found || got != nil && got.Spec.Equal(storetest.Spec(resources.TypeMeshTimeout, m))
		}
		if !found {
			t.Errorf("%s is %s, want one of %v", key, storetest.Describe([]*resources.Resource{got}), may)
		}
	}
	t.Logf("%d writes, %d keys", l.writes, len(l.acknowledged))
}
