package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

// meets checks whether the caller has a permission that the route needs, by the path of the request alone. If the route
// decides by the thing, it refuses only callers that the handler would refuse for any thing.
func (s *Server) meets(r *http.Request, row *Row) error {
	if row.Verb == "" || s.config.Guard == nil {
		return nil
	}
	if !row.ByThing {
		return s.Authorize(r, row.action(r, row.Verb))
	}
	if asked := access.AskedOf(r.Context()); asked != nil {
		asked.Unjudged = true
	}
	if row.Type == "" {
		if err := knowsType(r); err != nil {
			return err
		}
	}
	subject := access.SubjectOf(r.Context())
	var missing access.Action
	for _, verb := range row.verbs() {
		a := row.action(r, verb)
		if s.config.Guard.AllowsSome(subject, a) {
			return nil
		}
		if missing == (access.Action{}) {
			missing = a
			missing.Namespace = namespaceOf(r, a)
		}
	}
	if event := eventOf(missing.Verb); event != "" {
		note(r.Context(), event, missing)
	}
	return &access.DeniedError{Subject: subject, Missing: missing}
}

// namespaceOf returns the namespace that a request names, for the error message. No access decision depends on it.
func namespaceOf(r *http.Request, a access.Action) string {
	said := r.URL.Query().Get("namespace")
	if a.Scope != namespace || a.Mesh == "" || !resources.IsNamespaceName(said) {
		return ""
	}
	return said
}

// knowsType refuses a path with an unknown type, or with a type of global scope in a mesh.
func knowsType(r *http.Request) error {
	if r.PathValue("plural") != "" {
		_, err := descriptorOf(r)
		return err
	}
	if r.PathValue("type") != "" {
		_, err := KeyOf(r)
		return err
	}
	return nil
}

// typeOfPath returns the type that {plural} or {type} names, or its text if there is no such type.
func typeOfPath(r *http.Request) string {
	name := r.PathValue("plural")
	if name == "" {
		name = r.PathValue("type")
	}
	if d, ok := resources.LookupPath(name); ok {
		return string(d.Type)
	}
	return name
}

// eventOf returns the audit log's event for a verb. It is empty for reads, which the audit log does not record.
func eventOf(verb string) string {
	switch verb {
	case resources.VerbRead:
		return ""
	case resources.VerbDelete:
		return access.EventDelete
	case resources.VerbIssue, resources.VerbSign:
		return access.EventIssue
	case resources.VerbRotate:
		return access.EventRotate
	case resources.VerbRevoke:
		return access.EventRevoke
	case resources.VerbEnable, resources.VerbDisable, resources.VerbAcceptDeletes, resources.VerbResync:
		return access.EventZone
	case resources.VerbReadSecret:
		return access.EventReveal
	case resources.VerbBackUp:
		return access.EventBackUp
	}
	return access.EventWrite
}

// Authorize returns an error that names the permission that the caller lacks, or nil. It also sets the subject of the
// request's audit line. If the route decides, Handle has already checked. Use Authorize for things that a handler has
// looked up or read from a body.
func (s *Server) Authorize(r *http.Request, a access.Action) error {
	if event := eventOf(a.Verb); event != "" {
		note(r.Context(), event, a)
	}
	return s.authorize(r, a)
}

// authorize is Authorize without an effect on the audit line.
func (s *Server) authorize(r *http.Request, a access.Action) error {
	judged(r.Context())
	if s.config.Guard == nil {
		return nil
	}
	return s.config.Guard.Authorize(access.SubjectOf(r.Context()), a)
}

// judged records that an access decision was made.
func judged(ctx context.Context) {
	if asked := access.AskedOf(ctx); asked != nil {
		asked.Unjudged = false
	}
}

// insistOnJudgement panics if a response begins without an access decision, which is a bug of the handler.
func insistOnJudgement(r *http.Request, status int) {
	if asked := access.AskedOf(r.Context()); asked != nil && asked.Unjudged && status < http.StatusBadRequest {
		panic(fmt.Sprintf("the handler of %q answers without having authorized the caller", r.Pattern))
	}
}
