package api

import (
	"context"
	"errors"
	"slices"

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

// EnsureInitialPolicies creates, once, the initial policies of meshes that an earlier version created here. It keeps
// what users have changed or deleted since.
func EnsureInitialPolicies(ctx context.Context, s store.Store, home resources.Home) error {
	var unmarked []*resources.Resource
	d, _ := resources.Lookup(resources.TypeMesh)
	for r := range s.Snapshot().List(store.Query{Type: resources.TypeMesh}) {
		switch {
		case !home.MayWrite(d):
			if err := dropInitialPolicies(ctx, s, r, home); err != nil {
				return err
			}
		case home.Owns(r) && !resources.HasInitialPolicies(r):
			unmarked = append(unmarked, r)
		}
	}
	for _, r := range unmarked {
		mesh := r.Clone()
		resources.MarkInitialPolicies(mesh)
		ops := []store.Op{{Put: mesh, If: store.IfRevision(r.Revision)}}
		more, err := initialOps(s.Snapshot(), mesh, home)
		if err != nil {
			return err
		}
		// Another replica may be faster.
		if _, err := s.Apply(ctx, store.Batch{Ops: append(ops, more...)}); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// dropInitialPolicies removes the unmodified initial policies of a zone that ran alone and now has a global, because
// they would override the global's.
func dropInitialPolicies(ctx context.Context, s store.Store, mesh *resources.Resource, home resources.Home) error {
	policies, err := resources.InitialPolicies(mesh, home)
	if err != nil {
		return err
	}
	var ops []store.Op
	for _, p := range policies {
		if own := s.Snapshot().Get(p.Key); own != nil && own.SameContent(p) {
			ops = append(ops, store.Op{Delete: p.Key, If: store.IfRevision(own.Revision)})
		}
	}
	if len(ops) == 0 {
		return nil
	}
	_, err = s.Apply(ctx, store.Batch{Ops: ops})
	return err
}

// initialOps creates the initial policies of a mesh, except for existing ones.
func initialOps(snap store.Snapshot, mesh *resources.Resource, home resources.Home) ([]store.Op, error) {
	policies, err := resources.InitialPolicies(mesh, home)
	if err != nil {
		return nil, err
	}
	var out []store.Op
	for _, p := range policies {
		if snap.Get(p.Key) == nil {
			out = append(out, store.Op{Put: p, If: store.IfAbsent()})
		}
	}
	return out, nil
}

// keepMark returns a mesh with the mark of the one that it replaces. It returns any other resource unchanged.
func keepMark(doc, old *resources.Resource) *resources.Resource {
	if doc.Type != resources.TypeMesh || resources.HasInitialPolicies(doc) || !resources.HasInitialPolicies(old) {
		return doc
	}
	doc = doc.Clone()
	resources.MarkInitialPolicies(doc)
	return doc
}

// withInitialPolicies marks the meshes in b, and adds the initial policies of new ones to the batch. An existing mesh
// keeps its mark. A new mesh with the mark, such as one from a backup, gets no policies.
func (s *Server) withInitialPolicies(snap store.Snapshot, b *store.Batch) error {
	var brought map[resources.Key]bool
	for i := range b.Ops {
		mesh := b.Ops[i].Put
		if mesh.Type != resources.TypeMesh {
			continue
		}
		old := snap.Get(mesh.Key)
		b.Ops[i].Put = keepMark(mesh, old)
		if old != nil || resources.HasInitialPolicies(mesh) {
			continue
		}
		mesh = mesh.Clone()
		resources.MarkInitialPolicies(mesh)
		b.Ops[i] = store.Op{Put: mesh, If: store.IfAbsent()}
		ops, err := initialOps(snap, mesh, s.config.Home)
		if err != nil {
			return err
		}
		if brought == nil {
			brought = map[resources.Key]bool{}
			for _, op := range b.Ops {
				brought[op.Put.Key] = true
			}
		}
		b.Ops = append(b.Ops, slices.DeleteFunc(ops, func(op store.Op) bool { return brought[op.Put.Key] })...)
	}
	return nil
}
