package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func testOrder(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	label := map[string]string{"app": "web"}
	for i, at := range [][3]string{
		{"b", "", "a"}, {"a", "z", "a"}, {"a", "", "b"}, {"a", "", "a-b"}, {"a", "", "a"}, {"a-b", "", "a"},
		{"a", "y", "z"}, {"ab", "", "a"}, {"", "", "a"},
	} {
		k := resources.Key{Type: resources.TypeMeshTimeout, Mesh: at[0], Namespace: at[1], Name: at[2]}
		Apply(t, s, Put(Resource(k, i, label)))
		k.Type = resources.TypeMeshTrafficPermission
		Apply(t, s, Put(Resource(k, i, label)))
	}
	none, y := "", "y"
	all := []string{"//a", "a//a", "a//a-b", "a//b", "a/y/z", "a/z/a", "a-b//a", "ab//a", "b//a"}
	for name, row := range map[string]struct {
		query store.Query
		want  []string
	}{
		"type":                 {store.Query{}, all},
		"label":                {store.Query{Labels: label}, all},
		"mesh":                 {store.Query{Mesh: "a"}, []string{"a//a", "a//a-b", "a//b", "a/y/z", "a/z/a"}},
		"mesh and label":       {store.Query{Mesh: "a-b", Labels: label}, []string{"a-b//a"}},
		"no namespace":         {store.Query{Mesh: "a", Namespace: &none}, []string{"a//a", "a//a-b", "a//b"}},
		"namespace":            {store.Query{Namespace: &y}, []string{"a/y/z"}},
		"namespace and label":  {store.Query{Mesh: "a", Namespace: &y, Labels: label}, []string{"a/y/z"}},
		"unknown label":        {store.Query{Labels: map[string]string{"app": "web", "zone": "x"}}, nil},
		"label's other value":  {store.Query{Labels: map[string]string{"app": "we"}}, nil},
		"mesh that is not one": {store.Query{Mesh: "c"}, nil},
	} {
		row.query.Type = resources.TypeMeshTimeout
		if got := names(s.Snapshot(), row.query); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %v, want %v", name, got, row.want)
		}
	}
	if got := names(s.Snapshot(), store.Query{Type: resources.TypeMeshRetry}); got != nil {
		t.Errorf("another type: got %v", got)
	}
	for range s.Snapshot().List(store.Query{Type: resources.TypeMeshTimeout}) {
		break // A caller may leave a list early.
	}
}

func testSnapshot(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	a, b := Key("a"), Key("b")
	Apply(t, s, Put(Resource(a, 1, map[string]string{"v": "1"})))
	before := s.Snapshot()
	Apply(t, s, Put(Resource(a, 2, map[string]string{"v": "2"})))
	Apply(t, s, Put(Resource(b, 1, nil)))
	Apply(t, s, Delete(a))
	if before.Revision() != 1 || !before.Get(a).Spec.Equal(Spec(a.Type, 1)) || before.Get(b) != nil {
		t.Error("the snapshot changed")
	}
	if n := names(before, store.Query{Type: a.Type, Labels: map[string]string{"v": "1"}}); len(n) != 1 {
		t.Errorf("the snapshot's index changed: %v", n)
	}
	if s.Snapshot().Get(a) != nil || s.Snapshot().Get(b) == nil || s.Snapshot().Revision() != 4 {
		t.Error("the new snapshot is not new")
	}
}

func testWindowCommits(t *testing.T, open Open) {
	const window = 8
	s := open(t, store.ViewConfig{WindowCommits: window})
	for i := 1; i <= 5*window; i++ {
		Apply(t, s, Put(Resource(Key("a"), i, nil)))
		for since := 0; since <= i+1; since++ {
			commits, ok := s.Changes(uint64(since))
			if want := since <= i && since >= i-window; ok != want {
				t.Fatalf("at %d, since %d: got ok %t", i, since, ok)
			}
			if ok && len(commits) != i-since {
				t.Fatalf("at %d, since %d: got %d commits", i, since, len(commits))
			}
			for j, c := range commits {
				if c.Revision != uint64(since+j+1) {
					t.Fatalf("at %d, since %d: commit %d is revision %d", i, since, j, c.Revision)
				}
			}
		}
	}
}

func testWindowChanges(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{WindowChanges: 10})
	batch := func(n, content int) store.Batch {
		var b store.Batch
		for i := range n {
			b.Ops = append(b.Ops, store.Op{Put: Resource(Key(fmt.Sprint("r", i)), content, nil)})
		}
		return b
	}
	expect := func(since uint64, want int, wantOK bool) {
		t.Helper()
		if c, ok := s.Changes(since); ok != wantOK || len(c) != want {
			t.Errorf("since %d: got %d commits, %t; want %d, %t", since, len(c), ok, want, wantOK)
		}
	}
	Apply(t, s, batch(4, 1))
	Apply(t, s, batch(6, 2))
	expect(0, 2, true)
	Apply(t, s, batch(1, 3))
	expect(0, 0, false)
	expect(1, 2, true)
	Apply(t, s, batch(11, 4)) // Too big for the window by itself.
	expect(3, 0, false)
	expect(4, 0, true)
	Apply(t, s, batch(1, 5))
	expect(4, 1, true)
}

func testWatchers(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	const watchers = 100
	woken := make(chan struct{}, watchers)
	for range watchers {
		revision, next := s.Changed()
		if revision != 0 || !idle(next) {
			t.Fatal("woken before the first commit")
		}
		go func() {
			<-next
			woken <- struct{}{}
		}()
	}
	_, next := s.Changed()
	Apply(t, s, Put(Resource(Key("a"), 1, nil)))
	for range watchers {
		receive(t, woken)
	}
	receive(t, next)
	revision, next := s.Changed()
	if revision != 1 || !idle(next) {
		t.Fatalf("got revision %d, idle %t", revision, idle(next))
	}
	Apply(t, s, Delete(Key("a")))
	receive(t, next)
}
