package api

import (
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

// Need is a permission that an endpoint asks for, about what its path names: the mesh is {mesh}, the namespace that of the
// query.
type Need struct {
	// Verb is one of resources.AccessVerbs.
	Verb string
	// Type is a type of resources or one of resources.AccessThings. Empty means the one that the path names in {plural} or
	// {type}.
	Type string
	// Name is the part of the path that holds the name; "name" when empty.
	Name string

	anyone bool
}

// Anyone is the need of endpoints for everybody who has proven who they are.
func Anyone() Need { return Need{anyone: true} }

// meets reports what the asker lacks of n.
func (s *Server) meets(r *http.Request, n Need) error {
	if n.anyone {
		return nil
	}
	a := n.action(r)
	note(r.Context(), eventOf(n.Verb), a)
	return s.Authorize(r, a)
}

// action is what n means for one request.
func (n *Need) action(r *http.Request) access.Action {
	a := access.Action{Verb: n.Verb, Type: n.Type, Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace")}
	part := n.Name
	if part == "" {
		part = "name"
	}
	a.Name = r.PathValue(part)
	if a.Type == "" {
		a.Type = typeOfPath(r)
	}
	if a.Type == string(resources.TypeMesh) {
		a.Name = a.Mesh
	}
	if d, ok := resources.Lookup(resources.Type(a.Type)); ok && d.Scope == resources.ScopeGlobal && d.Type != resources.TypeMesh {
		a.Mesh, a.Namespace = "", ""
	}
	return a
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
	case resources.VerbBackUp:
		return access.EventBackUp
	}
	return access.EventWrite
}

// Authorize returns an error that says which permission the asker lacks; nil when there is none. It is what the audit line
// of the request will be about. Needs of a path are seen to by Handle; this is for what stands in a body.
func (s *Server) Authorize(r *http.Request, a access.Action) error {
	if event := eventOf(a.Verb); event != "" {
		note(r.Context(), event, a)
	}
	if s.config.Guard == nil {
		return nil
	}
	return s.config.Guard.Authorize(access.SubjectOf(r.Context()), a)
}
