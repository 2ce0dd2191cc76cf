package store_test

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestUndecodedSpecs checks that a view keeps what a writer decoded of a spec only if it is not told otherwise.
func TestUndecodedSpecs(t *testing.T) {
	for _, undecoded := range []bool{false, true} {
		s := store.NewMemoryWith(store.ViewConfig{Undecoded: undecoded})
		spec, err := resources.NewSpec(resources.TypeMeshTrafficPermission,
			[]byte(`{"rules":[{"default":{"allow":[{"spiffeID":{"type":"Exact","value":"spiffe://a/b"}}]}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		written := &resources.Resource{Key: resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
			Name: "p"}, Labels: map[string]string{}, Spec: spec}
		decoded, err := resources.SpecAs[resources.Policy](written)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: written}}}); err != nil {
			t.Fatal(err)
		}
		held := s.Snapshot().Get(written.Key)
		again, err := resources.SpecAs[resources.Policy](held)
		if err != nil || len(again.Rules) != 1 || !held.Spec.Equal(spec) {
			t.Fatalf("the spec is %s, decoded %+v: %v", held.Spec.JSON(), again, err)
		}
		if kept := again == decoded; kept == undecoded {
			t.Errorf("undecoded %v: what the writer decoded is kept: %v", undecoded, kept)
		}
	}
}
