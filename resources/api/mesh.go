package api

import (
	"context"
	"errors"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// DefaultMesh is the mesh that exists from the first start.
const DefaultMesh = "default"

// EnsureDefaultMesh creates DefaultMesh if the store has no mesh at all and home may write meshes: on the global, and
// in a zone that runs alone.
func EnsureDefaultMesh(ctx context.Context, s store.Store, home resources.Home) error {
	d, _ := resources.Lookup(resources.TypeMesh)
	if !home.MayWrite(d) {
		return nil
	}
	for range s.Snapshot().List(store.Query{Type: resources.TypeMesh}) {
		return nil
	}
	spec, err := resources.NewSpec(resources.TypeMesh, []byte("{}"))
	if err != nil {
		return err
	}
	mesh := home.Labelled(&resources.Resource{Key: meshKey(DefaultMesh), Spec: spec})
	_, err = s.Apply(ctx, store.Batch{Ops: []store.Op{{Put: mesh, If: store.IfAbsent()}}})
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}
