package api

import (
	"context"
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// mayReadSome checks access to a list. It fails if the caller can read nothing of the type. Otherwise it returns a
// Reader that reports which items the caller can read.
func (s *Server) mayReadSome(r *http.Request, t resources.Type) (*Reader, error) {
	reader := s.Reader(r)
	if reader == nil {
		return nil, nil
	}
	subject := access.SubjectOf(r.Context())
	some := access.Action{Verb: resources.VerbRead, Type: string(t),
		Scope: access.ScopeOf(resources.VerbRead, string(t)), Mesh: r.PathValue("mesh")}
	if !s.config.Guard.AllowsSome(subject, some) {
		return nil, &access.DeniedError{Subject: subject, Missing: some}
	}
	return reader, nil
}

// authorizePuts refuses the whole request if the caller lacks one of the permissions that writing docs needs
// (access.ForWrite).
func (s *Server) authorizePuts(ctx context.Context, state store.Snapshot, docs []*resources.Resource) error {
	judged(ctx)
	if s.config.Guard == nil {
		return nil
	}
	subject := access.SubjectOf(ctx)
	for _, doc := range docs {
		old := state.Get(doc.Key)
		needed := access.ForWrite(state, old, doc)
		for i, a := range needed {
			if s.config.Guard.Allows(subject, a) {
				continue
			}
			if i > 0 && a.Type == string(doc.Type) && a.Verb == needed[0].Verb {
				a = needed[0] // only callers that may read the copy learn its owner
			}
			return &access.DeniedError{Subject: subject, Missing: s.unrevealing(subject, a, old)}
		}
	}
	return nil
}

// unrevealing returns the action that a denial reports as missing for a write to old, which may be nil. To a caller
// that may neither read nor create it, an update is reported as a creation, as if the resource did not exist.
func (s *Server) unrevealing(subject access.Subject, missing access.Action, old *resources.Resource) access.Action {
	if old == nil || missing.Verb != resources.VerbUpdate ||
		s.config.Guard.Allows(subject, access.OnResource(resources.VerbRead, old)) {
		return missing
	}
	creation := missing
	creation.Verb = resources.VerbCreate
	if s.config.Guard.Allows(subject, creation) {
		return missing
	}
	return creation
}

// isAccess reports whether resources of the type define permissions.
func isAccess(t resources.Type) bool {
	return t == resources.TypeAccessRole || t == resources.TypeAccessRoleBinding
}

// checkGrants checks the changes of a batch to roles and bindings. It runs under the write lock.
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

// checkWithdrawal checks the deletion of a role or binding. It runs under the write lock.
func (s *Server) checkWithdrawal(ctx context.Context, state store.Snapshot, key resources.Key) error {
	if s.config.Guard == nil || !isAccess(key.Type) {
		return nil
	}
	return access.CheckGrant(access.SubjectOf(ctx), state, store.Without(state, key), nil)
}
