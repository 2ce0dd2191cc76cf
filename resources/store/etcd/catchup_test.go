package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// deaf opens a second server of a store that reads no events until the test makes it follow, like one that was paused.
func deaf(t *testing.T, s *Store) *Store {
	t.Helper()
	other := open(t, s.config)
	other.stopFollowing()
	other.following.Wait()
	return other
}

// TestCatchUpThatIsCutShort checks that a watch that ends while it catches up continues where it was. Etcd sends old
// events in batches of 1,000, under the newest revision.
func TestCatchUpThatIsCutShort(t *testing.T) {
	t.Parallel()
	s := several(t, 1, Config{Endpoints: etcdtest.Start(t, 1).Endpoints()})[0]
	behind := []*Store{deaf(t, s), deaf(t, s), deaf(t, s), deaf(t, s), deaf(t, s)}
	const writes = 1200
	for i := range writes {
		storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key(fmt.Sprint("r", i%300)), i, nil)))
	}
	late := cutShort(t, behind, s.Snapshot().Revision())
	f := follower{store: late, next: late.place.next}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = f.watch(ctx)
	}()
	agree(t, s, late)
	cancel()
	<-ended
}

// cutShort ends the watch of stores after its first batch and returns the first store that has not come to the revision:
// on a busy machine all may arrive before the watch ends.
func cutShort(t *testing.T, behind []*Store, revision uint64) *Store {
	t.Helper()
	for _, late := range behind {
		f := follower{store: late, next: late.place.next}
		ctx, cancel := context.WithCancel(t.Context())
		_, first := late.Changed()
		go func() {
			<-first
			cancel()
		}()
		if err := f.watch(ctx); err == nil {
			t.Fatal("the watch did not end")
		}
		if late.Snapshot().Revision() != revision {
			return late
		}
	}
	t.Fatal("the watch brought everything before it ended: nothing was shown")
	return nil
}

// TestGapIsSeen checks that a write that the watch missed is noticed at the next one, and that everything is compared.
func TestGapIsSeen(t *testing.T) {
	t.Parallel()
	s := several(t, 1, Config{Endpoints: etcdtest.Start(t, 1).Endpoints()})[0]
	late := deaf(t, s)
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("missed"), 1, nil)))
	f := follower{store: late, next: s.place.seen() + 1}
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("next"), 1, nil)))
	if err := f.watch(t.Context()); !errors.Is(err, errGap) {
		t.Fatalf("got %v, want %v", err, errGap)
	}
	if late.Snapshot().Get(storetest.Key("next")) != nil {
		t.Error("the write after the gap is shown")
	}
	if err := f.compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	agree(t, s, late)
}

// TestViewThatFallsBehindIsNotHealthy checks that a server notices by itself when its watch delivers nothing.
func TestViewThatFallsBehindIsNotHealthy(t *testing.T) {
	t.Parallel()
	s := several(t, 1, Config{Endpoints: etcdtest.Start(t, 1).Endpoints(), Timeout: 500 * time.Millisecond,
		WriterLease: time.Second})[0]
	late := deaf(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	late.following.Go(func() { late.watchHealth(ctx) })
	defer late.following.Wait()
	defer cancel()
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("missed"), 1, nil)))
	eventually(t, "the view is known to be behind", func() bool { return errors.Is(late.Healthy(), store.ErrUnavailable) })
	if err := late.health.err(); err != nil {
		t.Errorf("writes are refused although each is judged by etcd: %v", err)
	}
	f := follower{store: late, next: late.place.next}
	if err := f.compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the view is well again", func() bool { return late.Healthy() == nil })
}

// TestNothingIsSaidFromAStaleView checks that a server that lacks a write answers neither that there is nothing to do
// nor that the batch is refused.
func TestNothingIsSaidFromAStaleView(t *testing.T) {
	t.Parallel()
	s := several(t, 1, Config{Endpoints: etcdtest.Start(t, 1).Endpoints(), Timeout: 300 * time.Millisecond,
		WriterLease: time.Second})[0]
	key := storetest.Key("policy")
	batches := map[string]store.Batch{
		"a deletion":                storetest.Delete(key),
		"a condition that fails":    {Ops: []store.Op{{Delete: key, If: store.IfRevision(1)}}},
		"a check that refuses":      {Check: func(store.Snapshot) error { return errFull }},
		"nothing":                   {},
		"what the view has already": storetest.Put(storetest.Resource(storetest.Key("old"), 1, nil)),
		"a refusal beside a no-op": {Ops: []store.Op{{Put: storetest.Resource(storetest.Key("old"), 1, nil),
			If: store.IfAbsent()}}},
		"a deletion by its revision": {Ops: []store.Op{{Delete: storetest.Key("none"), If: store.IfRevision(7)}}},
	}
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("old"), 1, nil)))
	late := deaf(t, s)
	asked := map[string]*Store{} // a server for each, as each waits until its time is over
	for name := range batches {
		asked[name] = deaf(t, s)
	}
	storetest.Apply(t, s, storetest.Put(storetest.Resource(key, 1, nil)))
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("old"), 2, nil)))
	var waiting sync.WaitGroup
	for name, b := range batches {
		waiting.Go(func() {
			if _, err := asked[name].Apply(t.Context(), b); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v, want %v: the server cannot know", name, err, store.ErrUnavailable)
			}
		})
	}
	waiting.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	late.following.Go(func() { late.follow(ctx) })
	defer late.following.Wait()
	defer cancel()
	agree(t, s, late)
	if commit := storetest.Apply(t, late, storetest.Delete(key)); len(commit.Changes) != 1 {
		t.Errorf("the deletion had no effect: %+v", commit)
	}
}

// TestRestoredWhileAway checks that a store that was restored while a server was away is not taken for the previous
// one, even if it has a later revision.
func TestRestoredWhileAway(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	for name, writes := range map[string]int{"behind": 1, "at the same revision": 5, "further": 9} {
		t.Run(name, func(t *testing.T) {
			s := several(t, 1, Config{Endpoints: c.Endpoints(), Timeout: 500 * time.Millisecond})[0]
			late := deaf(t, s)
			client := clientOf(t, c)
			restore(t, client, s, late, writes)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			late.following.Go(func() { late.follow(ctx) })
			defer late.following.Wait()
			defer cancel()
			eventually(t, "the server notices", func() bool { return errors.Is(late.Healthy(), ErrWentBack) })
			if _, err := late.Apply(t.Context(),
				storetest.Put(storetest.Resource(storetest.Key("r1"), 99, nil))); !errors.Is(err, ErrWentBack) {
				t.Errorf("it writes: %v", err)
			}
		})
	}
}

// restore gives late the position of a write that the store, which has another history, does not contain: the server
// saw some of its revisions before the restore.
func restore(t *testing.T, client *clientv3.Client, s, late *Store, writes int) {
	t.Helper()
	for i := range writes {
		storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key(fmt.Sprint("after-", i)), 1, nil)))
	}
	r, err := client.Get(t.Context(), "any")
	if err != nil {
		t.Fatal(err)
	}
	lost := head{Revision: s.Snapshot().Revision() + 3, Part: 1, Parts: 1, Writer: late.writer, After: 1}
	value, err := lost.encode()
	if err != nil {
		t.Fatal(err)
	}
	at := map[int]int64{1: r.Header.Revision + 50, 5: r.Header.Revision, 9: r.Header.Revision - 4}[writes]
	transaction := late.Begin()
	transaction.Adopt(lost.Revision, []store.Change{{New: storetest.Resource(
		resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "lost"}, 1, nil)}})
	transaction.Commit()
	late.place.move(at, value)
}
