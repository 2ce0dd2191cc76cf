package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// initialOf returns the initial policies of a mesh in a store.
func initialOf(s store.Reader, mesh string) string {
	var out []string
	for _, key := range resources.InitialKeys(mesh) {
		if s.Snapshot().Get(key) != nil {
			out = append(out, string(key.Type))
		}
	}
	return strings.Join(out, " ")
}

const allInitial = "MeshCircuitBreaker MeshRetry"

// TestInitialPolicies checks that a mesh is created with its policies, unless it skips them, and only once: deleted
// ones do not return with a write or a restart. They are deleted with the mesh.
func TestInitialPolicies(t *testing.T) {
	t.Parallel()
	f := global(t)
	ensure := func() {
		t.Helper()
		if err := api.EnsureInitialPolicies(context.Background(), f.store, resources.Home{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := initialOf(f.store, "default"); got != "" {
		t.Fatalf("the mesh of an earlier version has %s", got)
	}
	ensure()
	before := f.store.Snapshot().Revision()
	ensure()
	if got := initialOf(f.store, "default"); got != allInitial || f.store.Snapshot().Revision() != before {
		t.Fatalf("after the upgrade: %s, and again a write: %v", got, f.store.Snapshot().Revision() != before)
	}
	put := func(name, skip string) {
		t.Helper()
		f.mustCall(t, http.MethodPut, "/meshes/"+name, `{"type": "Mesh", "name": "`+name+`"`+skip+`}`)
	}
	put("shop", "")
	put("bare", `, "skipCreatingInitialPolicies": ["*"]`)
	put("some", `, "skipCreatingInitialPolicies": ["MeshRetry"]`)
	for mesh, want := range map[string]string{"shop": allInitial, "bare": "", "some": "MeshCircuitBreaker"} {
		if got := initialOf(f.store, mesh); got != want {
			t.Errorf("%s has %q, want %q", mesh, got, want)
		}
	}
	f.mustCall(t, http.MethodDelete, "/meshes/shop/meshretries/mesh-retry-all-shop", "")
	put("shop", `, "meshServices": {"mode": "Exclusive"}`)
	ensure()
	if got := initialOf(f.store, "shop"); got != "MeshCircuitBreaker" {
		t.Errorf("after one was deleted: %q", got)
	}
	f.mustCall(t, http.MethodDelete, "/meshes/shop", "")
	if got := initialOf(f.store, "shop"); got != "" {
		t.Errorf("the mesh is deleted, and %s is there", got)
	}
}

// TestInitialPoliciesOfAZoneThatRanAlone checks that a zone that joins a global keeps no policies of its own that would
// win over the global's, except those that a user changed.
func TestInitialPoliciesOfAZoneThatRanAlone(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	ensure := func(home resources.Home) {
		t.Helper()
		for _, f := range []func(context.Context, store.Store, resources.Home) error{api.EnsureDefaultMesh,
			api.EnsureInitialPolicies} {
			if err := f(context.Background(), s, home); err != nil {
				t.Fatal(err)
			}
		}
	}
	alone := resources.Home{Zone: "zone-1", Alone: true}
	ensure(alone)
	if got := initialOf(s, "default"); got != allInitial {
		t.Fatalf("alone: %q", got)
	}
	key := resources.InitialKeys("default")[0]
	changed := s.Snapshot().Get(key).Clone()
	spec, err := resources.NewSpec(key.Type, []byte(`{"to": [{"targetRef": {"kind": "Mesh"}, "default": {"connectionLimits": {"maxConnections": 1}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	changed.Spec = spec
	if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: changed}}}); err != nil {
		t.Fatal(err)
	}
	ensure(resources.Home{Zone: "zone-1"})
	if got := initialOf(s, "default"); got != "MeshCircuitBreaker" {
		t.Errorf("with a global: %q, want the changed one", got)
	}
}
