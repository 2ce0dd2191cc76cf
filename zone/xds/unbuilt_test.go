package xds

import (
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestFirstConfigIsTriedAgain checks that a proxy whose first config could not be built gets one once a policy changes,
// without a change of its Dataplane and without connecting again.
func TestFirstConfigIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := storeOf(t, filepath.Join("testdata", "enforced", "mesh.yaml"))
	x := testProxies(s)
	broken := true
	x.cfg.Own = func(string, uint32) bool { return broken }
	session := newSession(x)
	defer session.end()
	if err := session.identify(testNode("caller")); err != nil {
		t.Fatal(err)
	}
	if session.proxy.state.Load() != nil || session.proxy.unbuilt.String() == "" {
		t.Fatal("the first config was built: nothing is shown")
	}
	change := func(name string) {
		t.Helper()
		policy := testResource(resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: name}, nil,
			map[string]any{"targetRef": map[string]any{"kind": "Mesh"}, "to": []any{map[string]any{
				"targetRef": map[string]any{"kind": "Mesh"}, "default": map[string]any{"connectionTimeout": "3s"}}}})
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: policy}}}); err != nil {
			t.Fatal(err)
		}
		x.catchUp()
	}
	change("one")
	if session.proxy.state.Load() != nil {
		t.Fatal("it was built although nothing has been mended")
	}
	broken = false
	change("two")
	if session.proxy.state.Load() == nil || session.proxy.unbuilt.String() != "" {
		t.Errorf("it has no config: %s", session.proxy.unbuilt.String())
	}
	if len(session.proxy.mesh.unready) != 0 {
		t.Error("it is still tried")
	}
}
