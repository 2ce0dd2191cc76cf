package etcd

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// replaced returns the resources of a backup.
func replaced(n int) []*resources.Resource {
	var out []*resources.Resource
	for i := range n {
		r := storetest.Resource(storetest.Key(fmt.Sprint("restored-", i)), 1, nil)
		r.Revision, r.CreationTime, r.ModificationTime = uint64(i+1), time.Unix(1e9, 0).UTC(), time.Unix(1e9, 0).UTC() //nolint:gosec // small
		out = append(out, r)
	}
	return out
}

// interrupt writes the first parts of a replacement, and ends as if the program had been killed: the writer's lease has
// ended.
func interrupt(t *testing.T, s *Store, revision uint64, rs []*resources.Resource, parts int) {
	t.Helper()
	transaction := s.Begin()
	defer transaction.Abort()
	all, err := s.cut([]*store.Commit{{Revision: revision, Changes: differences(transaction, rs)}}, s.wholeBytes())
	if err != nil {
		t.Fatal(err)
	}
	at, value := s.place.mark()
	w := &writing{store: s, expected: at, value: value, replaces: true,
		head: head{Revision: revision, Parts: len(all), Writer: s.writer, Replaced: replacements(value) + 1}}
	if err := w.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer w.unlock()
	for i := range parts {
		w.head.Part = i + 1
		if err := w.put(t.Context(), all[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInterruptedReplacement checks that nobody opens what an interrupted replacement left, that a server that followed
// the store neither shows it nor writes onto it, and that the replacement can be repeated.
func TestInterruptedReplacement(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	config := Config{Endpoints: c.Endpoints(), Prefix: "/interrupted", MaxOps: 2, WriterLease: time.Second,
		Timeout: 500 * time.Millisecond}
	s := open(t, config)
	for i := range 5 {
		storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key(fmt.Sprint("before-", i)), 1, nil)))
	}
	follows := open(t, config)
	agree(t, s, follows)
	before := all(follows)
	replacing := config
	replacing.Unfinished = true
	interrupt(t, open(t, replacing), 100, replaced(7), 2)
	for range 2 { // an interrupted repetition changes nothing about it
		if _, err := Open(t.Context(), config); !errors.Is(err, ErrUnfinished) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a server starts on what is there: %v", err)
		}
		interrupt(t, open(t, replacing), 200, replaced(9), 1)
	}
	eventually(t, "the server that followed to know", func() bool { return errors.Is(follows.Healthy(), ErrReplaced) })
	if _, err := follows.Apply(t.Context(), storetest.Put(storetest.Resource(storetest.Key("onto"), 1,
		nil))); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("it wrote: %v", err)
	}
	if now := all(follows); storetest.Describe(now) != storetest.Describe(before) {
		t.Errorf("it shows %s", storetest.Describe(now))
	}
	if err := open(t, replacing).Replace(t.Context(), 300, replaced(3)); err != nil {
		t.Fatal(err)
	}
	if got := open(t, config); got.Snapshot().Revision() != 300 || len(all(got)) != 3 {
		t.Errorf("after it was repeated: at %d: %s", got.Snapshot().Revision(), storetest.Describe(all(got)))
	}
}

// TestReplacedWhileAway checks that a server that followed the contents before does not take the new ones for their
// continuation: neither by the watch, nor by a comparison after etcd has forgotten what was in between.
func TestReplacedWhileAway(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprint("compacted: ", compacted), func(t *testing.T) {
			t.Parallel()
			l := newLink(t, c.Endpoints()[0])
			config := Config{Endpoints: c.Endpoints(), Prefix: fmt.Sprint("/away/", compacted), Timeout: 500 * time.Millisecond}
			s := open(t, config)
			storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("before"), 1, nil)))
			beyond := config
			beyond.Endpoints = []string{l.endpoint}
			follows := open(t, beyond)
			agree(t, s, follows)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			l.lose(true, true)
			again := open(t, config)
			if err := again.Replace(t.Context(), 100, replaced(3)); err != nil {
				t.Fatal(err)
			}
			storetest.Apply(t, again, storetest.Put(storetest.Resource(storetest.Key("after"), 1, nil)))
			if compacted {
				client := clientOf(t, c)
				if _, err := client.Compact(t.Context(), again.place.seen()); err != nil {
					t.Fatal(err)
				}
			}
			l.lose(false, false)
			eventually(t, "the server to know", func() bool { return errors.Is(follows.Healthy(), ErrReplaced) })
			if now := all(follows); len(now) != 1 {
				t.Errorf("it shows %s", storetest.Describe(now))
			}
		})
	}
}
