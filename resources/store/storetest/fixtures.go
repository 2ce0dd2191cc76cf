package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Deadline is how long a test waits for an expected event.
const Deadline = 20 * time.Second

// Key returns the key of a MeshTimeout in mesh default.
func Key(name string) resources.Key {
	return resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: name}
}

// Resource returns a resource whose spec depends on content.
func Resource(k resources.Key, content int, labels map[string]string) *resources.Resource {
	return &resources.Resource{Key: k, Labels: maps.Clone(labels), Spec: Spec(k.Type, content)}
}

// Spec returns a spec of type t with the content in an unknown field.
func Spec(t resources.Type, content int) *resources.Spec {
	s, err := resources.NewSpec(t, fmt.Appendf(nil, `{"content":%d,"text":"<a&b>"}`, content))
	if err != nil {
		panic(err)
	}
	return s
}

// Put returns a batch that stores r without a condition.
func Put(r *resources.Resource) store.Batch { return store.Batch{Ops: []store.Op{{Put: r}}} }

// Delete returns a batch that deletes k without a condition.
func Delete(k resources.Key) store.Batch { return store.Batch{Ops: []store.Op{{Delete: k}}} }

// Apply applies b and fails the test on an error.
func Apply(t testing.TB, s store.Store, b store.Batch) *store.Commit {
	t.Helper()
	c, err := s.Apply(context.Background(), b)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return c
}

// Equal reports whether a and b are the same in every field. Both may be nil.
func Equal(a, b *resources.Resource) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Key == b.Key && a.SameContent(b) && a.Revision == b.Revision && a.Version == b.Version &&
		a.CreationTime.Equal(b.CreationTime) && a.ModificationTime.Equal(b.ModificationTime)
}

// SameState fails the test unless both snapshots hold equal resources.
func SameState(t testing.TB, got, want store.Snapshot) {
	t.Helper()
	for _, d := range resources.Stored() {
		g := slices.Collect(got.List(store.Query{Type: d.Type}))
		w := slices.Collect(want.List(store.Query{Type: d.Type}))
		if len(g) != len(w) {
			t.Fatalf("%s: got %d resources, want %d", d.Type, len(g), len(w))
		}
		meshes := map[string]int{}
		for i := range g {
			if !Equal(g[i], w[i]) {
				t.Fatalf("got\n%swant\n%s", Describe(g[i:i+1]), Describe(w[i:i+1]))
			}
			meshes[g[i].Mesh]++
		}
		if total := got.Total(d.Type); total != len(g) {
			t.Fatalf("%s: counts %d in all meshes, has %d", d.Type, total, len(g))
		}
		for mesh, n := range meshes {
			if counted := got.Count(d.Type, mesh); counted != n {
				t.Fatalf("%s of mesh %q: counts %d, has %d", d.Type, mesh, counted, n)
			}
		}
	}
}

// Describe formats resources for a failure message.
func Describe(list []*resources.Resource) string {
	out := ""
	for _, r := range list {
		out += fmt.Sprintf("  %s@%d %v %s created %s modified %s\n", r.Key, r.Revision, r.Labels, r.Spec.JSON(),
			r.CreationTime, r.ModificationTime)
	}
	return out
}

// names lists the resources that a query selects.
func names(s store.Snapshot, q store.Query) []string {
	var out []string
	for r := range s.List(q) {
		out = append(out, r.Mesh+"/"+r.Namespace+"/"+r.Name)
	}
	return out
}

// receive waits for a watch channel.
func receive(t testing.TB, next <-chan struct{}) {
	t.Helper()
	select {
	case <-next:
	case <-time.After(Deadline):
		t.Fatal("no commit woke the watcher")
	}
}

func idle(next <-chan struct{}) bool {
	select {
	case <-next:
		return false
	default:
		return true
	}
}
