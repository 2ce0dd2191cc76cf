package kubernetes

import (
	"context"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestRestartKeepsTheLastValidGeneration restarts while an object is invalid whose earlier generation is in force.
func TestRestartKeepsTheLastValidGeneration(t *testing.T) {
	g := newRig(t)
	g.list(permission("u", 1, nil, true))
	g.holds("default shop/web u/1")
	g.reset(g.store)
	g.list(permission("u", 2, nil, false))
	g.holds("default shop/web u/1")
	if got := g.accepted(web); !strings.Contains(got, "generation 1 of it, the last valid one, stays in force") {
		t.Errorf("Accepted is %s", got)
	}
	g.sink().Deleted(permission("u", 2, nil, false))
	g.settled()
	g.holds()
}

// TestObjectReplacedUnseen deletes an object and makes another of its name before the server looks: what the first one said
// does not outlive it.
func TestObjectReplacedUnseen(t *testing.T) {
	for name, next := range map[string]*apiserver.Object{
		"invalid":      permission("v", 1, nil, false),
		"other mesh":   permission("v", 1, map[string]string{"kuma.io/mesh": "second"}, true),
		"missing mesh": permission("v", 1, map[string]string{"kuma.io/mesh": "missing"}, true),
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			g.secondMesh()
			g.list(permission("u", 1, nil, true))
			g.sink().Deleted(permission("u", 1, nil, true))
			g.sink().Changed(next)
			g.settled()
			if name == "other mesh" {
				g.holds("second shop/web v/1")
				return
			}
			g.holds()
		})
	}
}

func (g *rig) secondMesh() {
	g.t.Helper()
	mesh := []byte(`{"type": "Mesh", "name": "second"}`)
	docs, err := resources.DecodeDocuments(mesh, resources.DecodeOptions{})
	must(g.t, err)
	_, err = g.store.Apply(g.t.Context(), store.Batch{Ops: []store.Op{{Put: g.Home.Labelled(docs[0])}}})
	must(g.t, err)
}

// TestMoveToAnotherMesh keeps what is in force until the object is accepted in the other mesh.
func TestMoveToAnotherMesh(t *testing.T) {
	g := newRig(t)
	g.secondMesh()
	g.list(permission("u", 1, nil, true))
	g.sink().Changed(permission("u", 1, map[string]string{"kuma.io/mesh": "missing"}, true))
	g.settled()
	g.holds("default shop/web u/1")
	if got := g.accepted(web); !strings.HasPrefix(got, "False") || !strings.Contains(got, "stays in force") {
		t.Errorf("Accepted is %s", got)
	}
	g.sink().Changed(permission("u", 1, map[string]string{"kuma.io/mesh": "second"}, true))
	g.settled()
	g.holds("second shop/web u/1")
}

// TestForgedCopy labels a user's object as a copy while the webhook is away: it is neither a copy nor deleted, and what
// was valid stays in force.
func TestForgedCopy(t *testing.T) {
	forged := map[string]string{LabelCopy: copied}
	for _, namespace := range []string{"shop", resources.DefaultSystemNamespace} {
		g := newRig(t)
		g.list(permissionIn(namespace, "u", 1, nil, true))
		for range 2 { // a restart later, too
			g.sink().Changed(permissionIn(namespace, "u", 1, forged, true))
			g.settled()
			g.holds("default " + namespace + "/web u/1")
			name := apiserver.Name{Namespace: namespace, Name: "web"}
			if o := g.kinds[resources.TypeMeshTrafficPermission].objects[name]; o.copy || o.refused == nil {
				t.Errorf("it is a copy: %v, and refused: %v", o.copy, o.refused)
			}
			if got := g.accepted(name); !strings.Contains(got, "is set by the server") || !strings.Contains(got, "stays in force") {
				t.Errorf("Accepted is %s", got)
			}
			g.reset(g.store)
			g.list(permissionIn(namespace, "u", 1, forged, true))
		}
		mended := &admissionRequest{Operation: operationUpdate, Namespace: namespace, Name: "web"}
		mended.Kind.Group, mended.Kind.Kind = group, "MeshTrafficPermission"
		mended.Object, mended.OldObject = permissionIn(namespace, "u", 1, nil, true).Raw, permissionIn(namespace, "u", 1, forged, true).Raw
		if answer := g.judge(t.Context(), mended, false); !answer.Allowed {
			t.Errorf("the label cannot be taken off again: %s", answer.Status.Message)
		}
		mended.Object, mended.OldObject = mended.OldObject, mended.Object
		if answer := g.judge(t.Context(), mended, false); answer.Allowed {
			t.Error("the label may be set")
		}
	}
}

// TestCopiesHaveOnePlace puts a resource of the server in the system namespace, and an object of its name elsewhere.
func TestCopiesHaveOnePlace(t *testing.T) {
	g := newRig(t)
	g.list(permissionIn(resources.DefaultSystemNamespace, "u", 1, nil, true))
	if r := g.resourceOf(objectID{resources.TypeMeshTrafficPermission, web}); r != nil {
		t.Errorf("shop/web shows %v", r.Key)
	}
}

// TestReasonsAreOfOneGeneration asks for the conditions of a generation that nobody has judged.
func TestReasonsAreOfOneGeneration(t *testing.T) {
	g := newRig(t)
	g.list(permission("u", 1, nil, false))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.sink().Changed(permission("u", 2, nil, true))
	g.feedOnce(ctx) // the store takes nothing
	if got := g.accepted(web); strings.HasPrefix(got, "False") && len(g.names()) == 0 {
		t.Errorf("of generation 2, Accepted is %s", got)
	}
}

// TestAbsentKindsArePendingCopies looks at a copy while its kind is not there.
func TestAbsentKindsArePendingCopies(t *testing.T) {
	g := newRig(t)
	id, _ := g.idOf(resources.Key{Type: resources.TypeMesh, Name: "default"})
	g.kinds[resources.TypeMesh].absent = true
	g.projectOne(t.Context(), id)
	if !g.unprojected[id] {
		t.Error("the copy is forgotten")
	}
}
