package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// TestOverlayIsWhatTheStoreWouldBe checks that an overlay reads like a store that contains the resources.
func TestOverlayIsWhatTheStoreWouldBe(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := store.NewMemory()
		defer s.Close()
		put := func(what string) []*resources.Resource {
			var batch store.Batch
			all := rapid.SliceOfNDistinct(rapid.Custom(drawResource), 0, 6,
				func(r *resources.Resource) resources.Key { return r.Key }).Draw(rt, what)
			for _, r := range all {
				batch.Ops = append(batch.Ops, store.Op{Put: r})
			}
			if what == "stored" {
				apply(rt, s, batch)
			}
			return all
		}
		put("stored")
		puts := put("puts")
		before := s.Snapshot()
		over := store.Overlay(before, puts)
		var batch store.Batch
		for _, r := range puts {
			batch.Ops = append(batch.Ops, store.Op{Put: r})
		}
		apply(rt, s, batch)
		after := s.Snapshot()
		other := "b"
		for _, q := range []store.Query{
			{Type: resources.TypeMeshService}, {Type: resources.TypeMeshService, Mesh: "m2"},
			{Type: resources.TypeMeshService, Namespace: &other},
			{Type: resources.TypeMeshService, Labels: map[string]string{"app": "x"}}, {Type: resources.TypeMesh},
		} {
			if diff := cmp.Diff(list(after, q), list(over, q)); diff != "" {
				rt.Fatalf("%+v (-store +overlay):\n%s", q, diff)
			}
			if is, want := over.Count(q.Type, q.Mesh), after.Count(q.Type, q.Mesh); is != want {
				rt.Fatalf("%+v: the overlay counts %d, the store %d", q, is, want)
			}
		}
		for _, r := range puts {
			if over.Get(r.Key) == nil || !over.Get(r.Key).SameContent(r) {
				rt.Fatalf("%s is not there", r.Key)
			}
		}
		if over.Revision() != before.Revision() || over.Get(resources.Key{Type: resources.TypeMesh, Name: "none"}) != nil {
			rt.Fatal("it shows what is not there")
		}
	})
}

func drawResource(t *rapid.T) *resources.Resource {
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	spec, err := resources.NewSpec(resources.TypeMeshService, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return &resources.Resource{
		Key: resources.Key{Type: resources.TypeMeshService, Mesh: pick("mesh", "m1", "m2"),
			Namespace: pick("namespace", "", "a", "b"), Name: pick("name", "a", "b", "c")},
		Labels: map[string]string{"app": pick("app", "x", "y")}, Spec: spec,
	}
}

func apply(t *rapid.T, s store.Store, b store.Batch) {
	if _, err := s.Apply(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

func list(s store.Snapshot, q store.Query) []string {
	var out []string
	for r := range s.List(q) {
		out = append(out, fmt.Sprint(r.Key, r.Labels))
	}
	return out
}

// TestWithoutCountsOneLess: a snapshot without a resource counts it no more, if it was there.
func TestWithoutCountsOneLess(t *testing.T) {
	s := store.NewMemory()
	defer s.Close()
	there := storetest.Key("there")
	storetest.Apply(t, s, storetest.Put(storetest.Resource(there, 1, nil)))
	storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key("other"), 1, nil)))
	for name, want := range map[string]int{"there": 1, "none": 2} {
		if n := store.Without(s.Snapshot(), storetest.Key(name)).Count(there.Type, there.Mesh); n != want {
			t.Errorf("without %s: %d, want %d", name, n, want)
		}
	}
}
