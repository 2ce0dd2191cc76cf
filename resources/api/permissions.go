package api

import (
	"context"
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// mayReadItem judges a look at one resource: by its home namespace, where it is there. Whether it is there, only who may read
// it learns.
func (s *Server) mayReadItem(r *http.Request, key resources.Key, found *resources.Resource) error {
	if found != nil {
		key = found.Key
		key.Namespace = found.HomeNamespace()
	}
	return s.Authorize(r, access.On(resources.VerbRead, key))
}

// mayReadSome judges a look at a list: an error where the asker can see nothing of the kind, and otherwise which items she
// can see.
func (s *Server) mayReadSome(r *http.Request, q store.Query) (func(*resources.Resource) bool, error) {
	guard, subject := s.config.Guard, access.SubjectOf(r.Context())
	if guard == nil {
		return func(*resources.Resource) bool { return true }, nil
	}
	roles := guard.Roles()
	some := access.Action{Verb: resources.VerbRead, Type: string(q.Type), Mesh: q.Mesh}
	if q.Namespace != nil {
		some.Namespace = *q.Namespace
	}
	if !roles.AllowsSome(subject, some) {
		return nil, &access.DeniedError{Subject: subject, Missing: some}
	}
	return func(item *resources.Resource) bool {
		key := item.Key
		key.Namespace = item.HomeNamespace()
		return roles.Allows(subject, access.On(resources.VerbRead, key))
	}, nil
}

// authorizePuts refuses the whole request when the asker lacks the permission to create or update one of docs, or to give a
// Dataplane the identity that it would have.
func (s *Server) authorizePuts(ctx context.Context, state store.Snapshot, docs []*resources.Resource) error {
	if s.config.Guard == nil {
		return nil
	}
	subject, roles := access.SubjectOf(ctx), s.config.Guard.Roles()
	for _, doc := range docs {
		old := state.Get(doc.Key)
		verb := resources.VerbCreate
		if old != nil {
			verb = resources.VerbUpdate
		}
		needed := []access.Action{access.On(verb, doc.Key)}
		if doc.Type == resources.TypeDataplane {
			needed = append(needed, access.Assignments(old, doc, identityLabels(state, doc.Mesh))...)
		}
		for _, a := range needed {
			if !roles.Allows(subject, a) {
				return &access.DeniedError{Subject: subject, Missing: a}
			}
		}
	}
	return nil
}

// identityLabels are the labels by which the MeshIdentities of a mesh tell who a Dataplane is.
func identityLabels(state store.Snapshot, mesh string) map[string]bool {
	var list []*resources.MeshIdentity
	for r := range state.List(store.Query{Type: resources.TypeMeshIdentity, Mesh: mesh}) {
		if spec, err := resources.SpecAs[resources.MeshIdentity](r); err == nil {
			list = append(list, spec)
		}
	}
	return resources.IdentityLabels(list)
}

// isAccess reports whether resources of the type say who may do what.
func isAccess(t resources.Type) bool {
	return t == resources.TypeAccessRole || t == resources.TypeAccessRoleBinding
}

// checkGrants judges what a batch does to roles and bindings. It runs under the write lock.
func (s *Server) checkGrants(ctx context.Context, state store.Snapshot, docs []*resources.Resource) error {
	if s.config.Guard == nil {
		return nil
	}
	var changed []*resources.Resource
	for _, doc := range docs {
		if isAccess(doc.Type) {
			changed = append(changed, doc)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return access.CheckGrant(access.SubjectOf(ctx), state, store.Overlay(state, changed), changed)
}

// checkWithdrawal judges the removal of a role or binding. It runs under the write lock.
func (s *Server) checkWithdrawal(ctx context.Context, state store.Snapshot, key resources.Key) error {
	if s.config.Guard == nil || !isAccess(key.Type) {
		return nil
	}
	return access.CheckGrant(access.SubjectOf(ctx), state, store.Without(state, key), nil)
}
