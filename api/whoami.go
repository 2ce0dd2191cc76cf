package api

import (
	"net/http"
	"slices"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

// WhoAmI is the response to `GET /who-am-i`.
type WhoAmI struct {
	Name   string        `json:"name"`
	Groups []string      `json:"groups"`
	Method access.Method `json:"method"`
	// Credential identifies the credential: a token's id, or a certificate's serial number and expiry.
	Credential string `json:"credential,omitempty"`
}

func (s *Server) whoAmI(w http.ResponseWriter, r *http.Request) error {
	subject := access.SubjectOf(r.Context())
	return WriteJSON(w, http.StatusOK, WhoAmI{Name: subject.Name, Groups: subject.Groups, Method: subject.Method,
		Credential: subject.Credential})
}

// CanIQuestion is the body of `POST /_can-i`.
type CanIQuestion struct {
	Verb string `json:"verb"`
	// Type is a type of resources, by name or path, or one of resources.AccessThings.
	Type      string `json:"type"`
	Mesh      string `json:"mesh,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// As and AsGroups ask about another user. The caller must be able to read AccessRoleBindings.
	As       string   `json:"as,omitempty"`
	AsGroups []string `json:"asGroups,omitempty"`
}

// CanIAnswer is the response to `POST /_can-i`.
type CanIAnswer struct {
	Allowed bool `json:"allowed"`
	// User is the user that the answer is about. Permission is the permission in question.
	User       string `json:"user"`
	Permission string `json:"permission"`
}

// canI reports whether a user has a permission. It changes nothing.
func (s *Server) canI(w http.ResponseWriter, r *http.Request) error {
	var q CanIQuestion
	if err := ReadJSON(r, maxSteering, "document", "the body is not a question: %v", &q); err != nil {
		return err
	}
	if !slices.Contains(resources.AccessVerbs(), q.Verb) {
		return BadField("verb", "unknown verb %q, want one of %q", q.Verb, resources.AccessVerbs())
	}
	if d, ok := resources.LookupPath(q.Type); ok {
		q.Type = string(d.Type)
	}
	d, known := resources.Lookup(resources.Type(q.Type))
	if !known && !slices.Contains(resources.AccessThings(), q.Type) {
		return BadField("type", "there is no type %q", q.Type)
	}
	for _, named := range [][3]string{{"mesh", "mesh", q.Mesh}, {"namespace", "namespace", q.Namespace}} {
		if named[2] == "" {
			continue
		}
		if err := CheckName(named[0], named[1], named[2]); err != nil {
			return err
		}
	}
	if err := CheckText("name", q.Name); err != nil {
		return err
	}
	if known && d.Type == resources.TypeMesh {
		q.Mesh = q.Name
	}
	a := access.About(q.Verb, q.Type, q.Mesh, q.Namespace, q.Name)
	subject := access.SubjectOf(r.Context())
	if q.As != "" || len(q.AsGroups) > 0 {
		if err := s.Authorize(r, access.Action{Verb: resources.VerbRead, Type: string(resources.TypeAccessRoleBinding),
			Scope: access.ScopeServer}); err != nil {
			return err
		}
		subject = access.Subject{Name: q.As, Groups: append(q.AsGroups, access.AuthenticatedGroup)}
	}
	allowed := s.config.Guard == nil || s.config.Guard.Roles().Allows(subject, a)
	return WriteJSON(w, http.StatusOK, CanIAnswer{Allowed: allowed, User: subject.Name, Permission: a.String()})
}
