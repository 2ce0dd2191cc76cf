package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func testConditions(t *testing.T, open Open) {
	there, gone := Key("there"), Key("gone")
	put := func(k resources.Key) *resources.Resource { return Resource(k, 2, nil) }
	for name, row := range map[string]struct {
		op   store.Op
		want error
	}{
		"put always":                  {store.Op{Put: put(there)}, nil},
		"put if absent, there":        {store.Op{Put: put(there), If: store.IfAbsent()}, store.ErrConflict},
		"put if absent, gone":         {store.Op{Put: put(gone), If: store.IfAbsent()}, nil},
		"put at its revision":         {store.Op{Put: put(there), If: store.IfRevision(2)}, nil},
		"put at an older revision":    {store.Op{Put: put(there), If: store.IfRevision(1)}, store.ErrConflict},
		"put at a revision, gone":     {store.Op{Put: put(gone), If: store.IfRevision(2)}, store.ErrConflict},
		"put at revision zero, there": {store.Op{Put: put(there), If: store.IfRevision(0)}, store.ErrConflict},
		"delete always":               {store.Op{Delete: there}, nil},
		"delete always, gone":         {store.Op{Delete: gone}, nil},
		"delete if absent, there":     {store.Op{Delete: there, If: store.IfAbsent()}, store.ErrConflict},
		"delete if absent, gone":      {store.Op{Delete: gone, If: store.IfAbsent()}, nil},
		"delete at its revision":      {store.Op{Delete: there, If: store.IfRevision(2)}, nil},
		"delete at an older revision": {store.Op{Delete: there, If: store.IfRevision(1)}, store.ErrConflict},
		"delete at a revision, gone":  {store.Op{Delete: gone, If: store.IfRevision(2)}, store.ErrNotFound},
		"equal put at an older revision": {store.Op{Put: Resource(there, 1, nil), If: store.IfRevision(1)},
			store.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, store.ViewConfig{})
			Apply(t, s, Put(Resource(Key("other"), 1, nil)))
			Apply(t, s, Put(Resource(there, 1, nil)))
			before := s.Snapshot()
			_, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{row.op}})
			if !errors.Is(err, row.want) {
				t.Fatalf("got %v, want %v", err, row.want)
			}
			if err != nil && s.Snapshot().Revision() != before.Revision() {
				t.Error("a refused batch changed the revision")
			}
			if err != nil && !strings.Contains(err.Error(), "MeshTimeout default/") {
				t.Errorf("the error does not name the resource: %v", err)
			}
		})
	}
}

func testBatch(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	a, b, c, d := Key("a"), Key("b"), Key("c"), Key("d")
	Apply(t, s, store.Batch{Ops: []store.Op{{Put: Resource(a, 1, nil)}, {Put: Resource(b, 1, nil)}}})

	_, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{
		{Put: Resource(a, 2, nil)}, {Delete: b}, {Put: Resource(c, 2, nil)}, {Delete: d, If: store.IfRevision(7)},
	}})
	if !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("got %v, want ErrNotFound", err)
	}
	if got := names(s.Snapshot(), store.Query{Type: a.Type}); !slices.Equal(got, []string{"default//a", "default//b"}) {
		t.Fatalf("a refused batch left %v", got)
	}
	if r := s.Snapshot().Get(a); !r.Spec.Equal(Spec(a.Type, 1)) {
		t.Fatalf("a refused batch left %s", r.Spec.JSON())
	}

	commit := Apply(t, s, store.Batch{Ops: []store.Op{
		{Put: Resource(d, 1, nil)},
		{Put: Resource(c, 2, nil)},
		{Put: Resource(a, 2, nil)},
		{Put: Resource(a, 3, nil)}, // One change for the key, with the last content.
		{Delete: b},
		{Delete: c}, // Created and deleted: no change.
	}})
	if commit.Revision != 2 || s.Snapshot().Revision() != 2 {
		t.Fatalf("got revision %d, store at %d, want 2", commit.Revision, s.Snapshot().Revision())
	}
	if len(commit.Changes) != 3 {
		t.Fatalf("got %d changes, want 3", len(commit.Changes))
	}
	for i, want := range []struct {
		key      resources.Key
		old, new bool
	}{{d, false, true}, {a, true, true}, {b, true, false}} {
		got := commit.Changes[i]
		if got.Key() != want.key || (got.Old != nil) != want.old || (got.New != nil) != want.new {
			t.Errorf("change %d is of %s, old %t, new %t; want %+v", i, got.Key(), got.Old != nil, got.New != nil, want)
		}
		if got.New != nil && got.New.Revision != commit.Revision {
			t.Errorf("%s is at revision %d, want %d", got.Key(), got.New.Revision, commit.Revision)
		}
	}
	if r := s.Snapshot().Get(a); !r.Spec.Equal(Spec(a.Type, 3)) {
		t.Errorf("got %s, want the last put", r.Spec.JSON())
	}
}

func testEqualContent(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	r := Resource(Key("a"), 1, map[string]string{"x": "y"})
	r.Status = json.RawMessage(`{"ready":"<yes>"}`)
	first := Apply(t, s, Put(r))
	_, next := s.Changed()
	for name, b := range map[string]store.Batch{
		"same":          Put(r),
		"put back":      {Ops: []store.Op{{Put: Resource(r.Key, 2, nil)}, {Put: r}}},
		"deleted, back": {Ops: []store.Op{{Delete: r.Key}, {Put: r}}},
		"absent delete": Delete(Key("b")),
		"empty":         {},
	} {
		c := Apply(t, s, b)
		if c.Revision != first.Revision || len(c.Changes) != 0 || !idle(next) {
			t.Errorf("%s: got revision %d with %d changes, woken %t", name, c.Revision, len(c.Changes), !idle(next))
		}
	}
	for name, change := range map[string]func(*resources.Resource){
		"labels": func(r *resources.Resource) { r.Labels["x"] = "z" },
		"spec":   func(r *resources.Resource) { r.Spec = Spec(r.Type, 9) },
		"status": func(r *resources.Resource) { r.Status = json.RawMessage(`{}`) },
	} {
		before := s.Snapshot().Revision()
		changed := r.Clone()
		change(changed)
		if c := Apply(t, s, Put(changed)); c.Revision != before+1 || len(c.Changes) != 1 {
			t.Errorf("%s: got revision %d with %d changes after %d", name, c.Revision, len(c.Changes), before)
		}
	}
}

func testCheck(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	a := Resource(Key("a"), 1, map[string]string{"l": "v"})
	refused := errors.New("refused")
	b := Put(a)
	b.Check = func(store.Snapshot) error { return refused }
	if _, err := s.Apply(context.Background(), b); !errors.Is(err, refused) {
		t.Fatalf("got %v, want the check's error", err)
	}
	if s.Snapshot().Revision() != 0 || s.Snapshot().Get(a.Key) != nil {
		t.Fatal("a refused batch was applied")
	}
	var seen store.Snapshot
	b.Check = func(now store.Snapshot) error {
		seen = now
		if now.Get(a.Key) != nil || now.Revision() != 0 {
			t.Error("the check sees its own batch")
		}
		return nil
	}
	Apply(t, s, b)
	Apply(t, s, store.Batch{Ops: []store.Op{{Delete: a.Key}}, Check: func(now store.Snapshot) error {
		if !Equal(now.Get(a.Key), s.Snapshot().Get(a.Key)) || now.Revision() != 1 ||
			len(names(now, store.Query{Type: a.Type, Labels: a.Labels})) != 1 {
			t.Error("the check does not see the batch before")
		}
		return nil
	}})
	if seen.Get(a.Key) != nil || seen.Revision() != 0 {
		t.Error("the snapshot of a check changed later")
	}
}

func testTimes(t *testing.T, open Open) {
	var now atomic.Pointer[time.Time]
	at := func(hour int) time.Time {
		return time.Date(2030, 1, 1, hour, 0, 0, 123456789, time.FixedZone("", 3600))
	}
	set := func(hour int) { v := at(hour); now.Store(&v) }
	set(1)
	s := open(t, store.ViewConfig{Now: func() time.Time { return *now.Load() }})
	expect := func(k resources.Key, created, modified time.Time) {
		t.Helper()
		r := s.Snapshot().Get(k)
		if !r.CreationTime.Equal(created) || !r.ModificationTime.Equal(modified) {
			t.Errorf("got created %s, modified %s; want %s, %s", r.CreationTime, r.ModificationTime, created, modified)
		}
		if r.CreationTime.Location() != time.UTC || r.ModificationTime.Location() != time.UTC {
			t.Errorf("times are not in UTC")
		}
	}
	a := Resource(Key("a"), 1, nil)
	Apply(t, s, Put(a))
	expect(a.Key, at(1), at(1))
	set(2)
	Apply(t, s, Put(Resource(a.Key, 2, nil)))
	expect(a.Key, at(1), at(2))
	set(3)
	Apply(t, s, Put(Resource(a.Key, 2, nil)))
	expect(a.Key, at(1), at(2))
	given := Resource(a.Key, 3, nil)
	given.CreationTime = at(0)
	given.ModificationTime = at(0)
	given.Revision = 77
	Apply(t, s, Put(given))
	expect(a.Key, at(0), at(3))
	if given.Revision != 77 || !given.ModificationTime.Equal(at(0)) {
		t.Error("the store changed the caller's resource")
	}
	set(4)
	Apply(t, s, Delete(a.Key))
	Apply(t, s, Put(a))
	expect(a.Key, at(4), at(4))
}

func testOwnership(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	r := Resource(Key("a"), 1, map[string]string{"app": "one"})
	Apply(t, s, Put(r))
	r.Labels["app"] = "two"
	r.Labels["new"] = "label"
	got := s.Snapshot().Get(r.Key)
	if len(got.Labels) != 1 || got.Labels["app"] != "one" {
		t.Fatalf("the caller's map is the store's: %v", got.Labels)
	}
	Apply(t, s, Put(r))
	if n := names(s.Snapshot(), store.Query{Type: r.Type, Labels: map[string]string{"app": "one"}}); len(n) != 0 {
		t.Errorf("found by a label that it no longer has: %v", n)
	}
	if n := names(s.Snapshot(), store.Query{Type: r.Type, Labels: map[string]string{"app": "two"}}); len(n) != 1 {
		t.Errorf("not found by its label: %v", n)
	}
}

func testInvalid(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	for name, spoil := range map[string]func(*resources.Resource){
		"no name":              func(r *resources.Resource) { r.Name = "" },
		"unknown type":         func(r *resources.Resource) { r.Type = "Nothing" },
		"no spec":              func(r *resources.Resource) { r.Spec = nil },
		"NUL in the key":       func(r *resources.Resource) { r.Mesh = "a\x00b" },
		"key not UTF-8":        func(r *resources.Resource) { r.Namespace = "\xff" },
		"key too long":         func(r *resources.Resource) { r.Name = strings.Repeat("x", store.MaxKeySize) },
		"NUL in a label":       func(r *resources.Resource) { r.Labels["a"] = "\x00" },
		"label not UTF-8":      func(r *resources.Resource) { r.Labels["\xff"] = "" },
		"status is not JSON":   func(r *resources.Resource) { r.Status = json.RawMessage(`{`) },
		"status is empty text": func(r *resources.Resource) { r.Status = json.RawMessage{} },
	} {
		r := Resource(Key("a"), 1, map[string]string{})
		spoil(r)
		if _, err := s.Apply(context.Background(), Put(r)); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	if s.Snapshot().Revision() != 0 {
		t.Error("something was stored")
	}
	// A key that equals another one when its parts are concatenated is still a different key.
	whole := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "m", Namespace: "n", Name: "x"}
	alias := resources.Key{Type: whole.Type, Mesh: "m\x00n", Namespace: "x"}
	Apply(t, s, Put(Resource(whole, 1, nil)))
	Apply(t, s, Delete(alias))
	if s.Snapshot().Get(whole) == nil || s.Snapshot().Get(alias) != nil {
		t.Error("a key with a NUL stands for another one")
	}
}

func testContext(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Apply(ctx, Put(Resource(Key("a"), 1, nil))); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the context's error", err)
	}
	if s.Snapshot().Revision() != 0 {
		t.Fatal("the batch was applied")
	}
}

func testClosed(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	r := Resource(Key("a"), 1, nil)
	Apply(t, s, Put(r))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("second close: %v", err)
	}
	if _, err := s.Apply(context.Background(), Delete(r.Key)); !errors.Is(err, store.ErrClosed) {
		t.Fatalf("got %v, want ErrClosed", err)
	}
	if s.Snapshot().Get(r.Key) == nil {
		t.Fatal("reads ended with the store")
	}
	if c, ok := s.Changes(0); !ok || len(c) != 1 {
		t.Fatal("the changelog ended with the store")
	}
}
