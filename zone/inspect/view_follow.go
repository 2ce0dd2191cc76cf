package inspect

import (
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// follow returns the view of the same mesh at a later snapshot, made from the policies that have changed since. It returns
// nil if more than policies has changed, or more than the changelog tells, or if v is nil: newView compares in full then.
func (v *view) follow(snap store.Snapshot, mesh string) *view {
	if v == nil {
		return nil
	}
	keys, ok := v.changedPolicies(snap, mesh)
	if !ok {
		return nil
	}
	next := *v
	next.snap = snap
	next.policies, next.index, _, _ = matching.PoliciesAfter(v.policies, v.index, keys, snap.Get, v.config.SystemNamespace)
	return &next
}

// changedPolicies returns the keys of the policies of a mesh that have changed up to a snapshot. ok is false if something
// else has changed on which a view depends, or if the changelog does not reach back.
func (v *view) changedPolicies(snap store.Snapshot, mesh string) (keys map[resources.Key]bool, ok bool) {
	commits, ok := v.config.Store.Changes(v.snap.Revision())
	if !ok {
		return nil, false
	}
	keys = map[resources.Key]bool{}
	for _, commit := range commits {
		if commit.Revision > snap.Revision() {
			break
		}
		for _, change := range commit.Changes {
			key := change.Key()
			switch d, known := resources.Lookup(key.Type); {
			case key.Type == resources.TypeMesh && key.Name == mesh:
				return nil, false
			case key.Mesh != mesh:
			case matching.IsDestination(key.Type) || readsInFull(key.Type):
				return nil, false
			case known && d.Policy != nil:
				keys[key] = true
			}
		}
	}
	return keys, true
}

// readsInFull reports whether a view depends on the resources of a type, besides policies and destinations.
func readsInFull(t resources.Type) bool {
	switch t {
	case resources.TypeMeshGateway, resources.TypeMeshReferenceGrant, resources.TypeTrafficTarget, resources.TypeHTTPRouteGroup:
		return true
	}
	return false
}
