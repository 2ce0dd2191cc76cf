package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

// meets reports what the asker lacks of what a route needs, before anything but the path of the request is read. Where the thing
// decides, it reports whom the handler would refuse whatever the thing is.
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

// namespaceOf is the namespace that a request for an action names, for what the asker is told: nothing is judged by it.
func namespaceOf(r *http.Request, a access.Action) string {
	said := r.URL.Query().Get("namespace")
	if a.Scope != namespace || a.Mesh == "" || !resources.IsNamespaceName(said) {
		return ""
	}
	return said
}

// knowsType refuses a path that names no type of resources, or one in a mesh that belongs to none.
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

// typeOfPath is the type that {plural} or {type} names; as it stands there when there is none.
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

// eventOf is what the audit log calls the use of a verb; empty for reading, which it does not tell of.
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

// Authorize returns an error that says which permission the asker lacks; nil when there is none. It is what the audit line
// of the request will be about. Where the route decides, Handle has asked already; this is for what a handler has looked up, or
// read in a body.
func (s *Server) Authorize(r *http.Request, a access.Action) error {
	if event := eventOf(a.Verb); event != "" {
		note(r.Context(), event, a)
	}
	return s.authorize(r, a)
}

// authorize is Authorize without a word to the audit line.
func (s *Server) authorize(r *http.Request, a access.Action) error {
	judged(r.Context())
	if s.config.Guard == nil {
		return nil
	}
	return s.config.Guard.Authorize(access.SubjectOf(r.Context()), a)
}

// judged notes that something has decided what the asker may.
func judged(ctx context.Context) {
	if asked := access.AskedOf(ctx); asked != nil {
		asked.Unjudged = false
	}
}

// insistOnJudgement panics when an answer begins that nobody has judged: a handler forgot to.
func insistOnJudgement(r *http.Request, status int) {
	if asked := access.AskedOf(r.Context()); asked != nil && asked.Unjudged && status < http.StatusBadRequest {
		panic(fmt.Sprintf("the handler of %q answers without having judged who asks", r.Pattern))
	}
}
