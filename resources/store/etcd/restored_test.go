package etcd

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// TestRestoredUnderAWatch checks that a server notices a restored store when the client resumes a watch by itself after
// a reconnect, even if the store has other writes at the revisions that were seen. The next write does not build on the
// old view.
func TestRestoredUnderAWatch(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	const prefix, writes = "/restored", 5
	l := newLink(t, c.Endpoints()[0])
	late := open(t, Config{Endpoints: []string{l.endpoint}, Prefix: prefix, Timeout: 500 * time.Millisecond})
	fill := func(name string, n int) *Store {
		s := open(t, Config{Endpoints: c.Endpoints(), Prefix: prefix})
		for i := range n {
			storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key(fmt.Sprint(name, i)), 1, nil)))
		}
		return s
	}
	before := fill("lost-", writes)
	agree(t, before, late)
	at := late.place.seen()
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	l.lose(true, true)
	c.Members[0].Wipe(t)
	c.Members[0].Ready(t)
	s := fill("other-", writes)
	if now := s.place.seen(); now != at {
		t.Fatalf("the other history is at %d, and has to be at %d", now, at)
	}
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("next"), 1, nil)))
	l.lose(false, false)
	eventually(t, "the server has heard of etcd", func() bool {
		return errors.Is(late.Healthy(), ErrWentBack) || late.Snapshot().Get(storetest.Key("next")) != nil
	})
	if late.Snapshot().Get(storetest.Key("next")) != nil || !errors.Is(late.Healthy(), ErrWentBack) {
		t.Errorf("the write after the restore went onto the view from before: healthy is %v, and it has %s",
			late.Healthy(), storetest.Describe(all(late)))
	}
}

// TestComparisonKnowsTheStore checks that a comparison with a store that has another write at the view's revision
// notices that, even if etcd has compacted that revision.
func TestComparisonKnowsTheStore(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprint("compacted: ", compacted), func(t *testing.T) {
			s := several(t, 1, Config{Endpoints: c.Endpoints(), Timeout: 500 * time.Millisecond})[0]
			late := deaf(t, s)
			client := clientOf(t, c)
			restore(t, client, s, late, 5)
			if compacted {
				if _, err := client.Put(t.Context(), "/elsewhere", "a note, a lease"); err != nil {
					t.Fatal(err)
				}
				r, err := client.Put(t.Context(), "/elsewhere", "another")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := client.Compact(t.Context(), r.Header.Revision); err != nil {
					t.Fatal(err)
				}
			}
			f := follower{store: late, next: late.place.seen() + 1}
			if err := f.compare(t.Context()); !errors.Is(err, ErrWentBack) || !errors.Is(late.Healthy(), ErrWentBack) {
				t.Errorf("the comparison ends with %v, healthy is %v", err, late.Healthy())
			}
		})
	}
}
