package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// listener records the news of the shared state.
type listener struct {
	mu       sync.Mutex
	replicas []string          // guarded by mu
	notes    map[string]string // guarded by mu
}

func (l *listener) apply(n StateChange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.Whole {
		l.notes = map[string]string{}
	}
	l.replicas = nil
	for _, m := range n.Replicas {
		l.replicas = append(l.replicas, m.ID+"="+string(m.Value))
	}
	for _, note := range n.Notes {
		if note.Value == nil {
			delete(l.notes, note.Key)
		} else {
			l.notes[note.Key] = string(note.Value)
		}
	}
}

func (l *listener) says(replicas, notes string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.replicas) == replicas && fmt.Sprint(l.notes) == notes
}

// during runs a part of the shared state until the test ends, or the function that it returns is called.
func during(t *testing.T, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// TestSharedState checks that all followers see the replicas, the oldest first, and the notes. A replica that leaves is
// gone at once, one that dies when its lease ends; an interruption loses nothing. The store is not affected.
func TestSharedState(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	stores := several(t, 2, Config{Endpoints: c.Endpoints(), Timeout: time.Second})
	one, other := stores[0].SharedState(2*time.Second), stores[1].SharedState(2*time.Second)
	heard, late := &listener{}, &listener{}
	during(t, func(ctx context.Context) { one.Follow(ctx, heard.apply) })
	during(t, func(ctx context.Context) {
		one.Register(ctx, Registration{ID: "z", Value: func() []byte { return []byte("1") }})
	})
	eventually(t, "the first", func() bool { return heard.says("[z=1]", "map[]") })
	leave := during(t, func(ctx context.Context) {
		other.Register(ctx, Registration{ID: "a", Value: func() []byte { return []byte("2") }})
	})
	eventually(t, "both, by age", func() bool { return heard.says("[z=1 a=2]", "map[]") })
	if err := other.Put(t.Context(), []Note{{"x/1", []byte("one")}, {"x/2", []byte("two")},
		{"y", []byte("why")}}); err != nil {
		t.Fatal(err)
	}
	if err := one.Put(t.Context(), []Note{{"x/1", []byte("uno")}, {"x/2", nil}}); err != nil {
		t.Fatal(err)
	}
	during(t, func(ctx context.Context) { other.Follow(ctx, late.apply) })
	for _, l := range []*listener{heard, late} {
		eventually(t, "the notes", func() bool { return l.says("[z=1 a=2]", "map[x/1:uno y:why]") })
	}
	if at := stores[0].Snapshot().Revision(); at != 0 {
		t.Errorf("the store is at %d", at)
	}
	leave()
	eventually(t, "who left is gone", func() bool { return late.says("[z=1]", "map[x/1:uno y:why]") })
	c.Members[0].Kill()
	eventually(t, "etcd is away", func() bool { return stores[1].Healthy() != nil })
	c.Members[0].Start(t)
	eventually(t, "etcd is back", func() bool { return stores[0].Healthy() == nil && stores[1].Healthy() == nil })
	if err := other.Clear(t.Context(), "x/"); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*listener{heard, late} {
		eventually(t, "what changed since", func() bool { return l.says("[z=1]", "map[y:why]") })
	}
	storetest.Apply(t, stores[0], storetest.Put(storetest.Resource(storetest.Key("a"), 1, nil)))
	agree(t, stores...)
}

// TestHistory checks that only the leader compacts the history.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Endpoints: etcdtest.Start(t, 1).Endpoints()})
	b := s.SharedState(0)
	step := func(before int64, ours bool) int64 {
		t.Helper()
		storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("a"), int(before), nil)))
		now, err := b.compact(t.Context(), before, ours)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	readable := func(at int64) bool {
		_, err := s.client.Get(t.Context(), s.keys.head(), clientv3.WithRev(at))
		return err == nil
	}
	first := step(0, true)
	second := step(first, false)
	if !readable(first) {
		t.Error("who does not lead has etcd forget")
	}
	step(second, true)
	if readable(first) || !readable(second) {
		t.Errorf("%d can be read: %v, %d: %v", first, readable(first), second, readable(second))
	}
}

// TestNoteThatIsTooLarge checks that a note that etcd never accepts is named, and delays none of the others.
func TestNoteThatIsTooLarge(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Endpoints: etcdtest.StartLimited(t, 64<<10).Endpoints()})
	b := s.SharedState(0)
	notes := []Note{{Key: "a", Value: []byte("1")}, {Key: "large", Value: make([]byte, 300<<10)},
		{Key: "b", Value: []byte("2")}}
	if err := b.Put(t.Context(), notes); !errors.Is(err, ErrNoteTooLarge) || !strings.Contains(err.Error(), "large") {
		t.Errorf("got %v", err)
	}
	_, there, _, err := b.load(t.Context())
	if err != nil || len(there) != 2 {
		t.Errorf("%d notes, %v: want a and b", len(there), err)
	}
}
