package api

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Reader reports which resources the caller of one request may read, by their homes. A nil Reader may read everything.
type Reader struct {
	allows func(access.Action) bool
}

// Reader returns the Reader of a request, for handlers whose response combines several resources. They omit those that
// the caller may not read, and report their number.
func (s *Server) Reader(r *http.Request) *Reader { return s.readerOf(r.Context()) }

func (s *Server) readerOf(ctx context.Context) *Reader {
	judged(ctx)
	if author, ok := ctx.Value(authorKey{}).(*Reader); ok {
		return author
	}
	guard, subject := s.config.Guard, access.SubjectOf(ctx)
	if guard == nil || guard.Allows(subject, access.Action{Verb: resources.VerbRead, Type: resources.AccessAny}) {
		return nil
	}
	if subject.Only != nil {
		return &Reader{allows: subject.Only}
	}
	roles := guard.Roles()
	return &Reader{allows: func(a access.Action) bool { return roles.Allows(subject, a) }}
}

// readsServer reports whether the caller, or the author of what is written elsewhere, may read what the server knows of
// itself.
func (s *Server) readsServer(ctx context.Context) bool {
	if author, ok := ctx.Value(authorKey{}).(*Reader); ok {
		return author == nil
	}
	return s.config.Guard == nil || s.config.Guard.Allows(access.SubjectOf(ctx),
		access.Action{Verb: resources.VerbRead, Type: resources.AccessServer, Scope: access.ScopeServer})
}

type authorKey struct{}

// Author returns the Reader of the author who writes a resource elsewhere, as an object of a cluster that authorized it
// by its own rules. The author may read what is in the object's namespace. Operators, who may read everything, write in
// the system namespace or in none.
func (s *Server) Author(r *resources.Resource) *Reader {
	if r.Namespace == "" || r.Namespace == s.config.Home.SystemNamespace {
		return nil
	}
	return &Reader{allows: func(a access.Action) bool {
		return a.Type == string(resources.TypeMesh) || a.Scope == namespace && a.Namespace == r.Namespace
	}}
}

// May reports whether the caller may read a resource.
func (x *Reader) May(r *resources.Resource) bool {
	return x == nil || x.allows(access.OnResource(resources.VerbRead, r))
}

// MayKRI is May for a KRI, whether or not the resource exists.
func (x *Reader) MayKRI(kri resources.KRI) bool {
	return x == nil || x.allows(access.OnKRI(resources.VerbRead, kri))
}

// unread replaces the KRI of an unreadable resource in texts.
const unread = "(what you may not read)"

var kriInText = regexp.MustCompile(`kri_[A-Za-z0-9_.-]+`)

// Text returns a text for people with the KRIs of unreadable resources replaced, as well as anything that begins like a
// KRI but is not valid.
func (x *Reader) Text(text string) string {
	if x == nil {
		return text
	}
	return kriInText.ReplaceAllStringFunc(text, func(name string) string {
		if kri, err := resources.ParseKRI(strings.TrimRight(name, ".")); err == nil && x.MayKRI(kri) {
			return name
		}
		return unread
	})
}

// texts applies Text to each element of a list.
func (x *Reader) texts(list []string) []string {
	for i := range list {
		list[i] = x.Text(list[i])
	}
	return list
}

// Zone reports whether the caller may read a zone.
func (x *Reader) Zone(name string) bool {
	return x == nil || x.allows(access.On(resources.VerbRead, resources.Key{Type: resources.TypeZone, Name: name}))
}

// Dataplane reports whether the caller may read a Dataplane, by its home.
func (x *Reader) Dataplane(mesh, namespace, name string) bool {
	return x == nil || x.allows(access.On(resources.VerbRead, resources.Key{Type: resources.TypeDataplane, Mesh: mesh,
		Namespace: namespace, Name: name}))
}

// insightOf reports whether the caller may read the insight of a resource. The insight has the home of the resource.
func (x *Reader) insightOf(r *resources.Resource) bool {
	return x == nil || x.allows(access.On(resources.VerbRead, resources.Key{Type: insightOf(r.Type), Mesh: r.Mesh,
		Namespace: r.HomeNamespace(), Name: r.DisplayName()}))
}

// hidden counts the resources of a query's type and mesh that the caller may not read. It ignores the other conditions
// of the query, so that the number reveals nothing about the resources.
func (x *Reader) hidden(v view, q store.Query) int {
	if x == nil {
		return 0
	}
	n := 0
	for r := range v.list(store.Query{Type: q.Type, Mesh: q.Mesh}) {
		if !x.May(r) {
			n++
		}
	}
	return n
}

// Find returns the resource that a request is about, if the caller has the permission for the verb. The permission is
// checked for the resource's home, or for what the request names if there is no resource. A caller without the
// permission gets the same error whether or not the resource exists.
func (s *Server) Find(r *http.Request, state store.Snapshot, verb string, key resources.Key) (*resources.Resource,
	error) {
	return s.find(r, view{stored: state, live: state}, verb, key)
}

// MissingMesh returns the error for a mesh that does not exist, with the nearest names that the caller may read. It
// returns nil for a mesh of the snapshot.
func (s *Server) MissingMesh(r *http.Request, state store.Snapshot, mesh string) error {
	if v := (view{stored: state, live: state}); v.get(meshKey(mesh)) == nil {
		return v.missing(meshKey(mesh), s.Reader(r))
	}
	return nil
}

// MissingZone returns the error for a zone that does not exist, or that the caller may not read, with the nearest names
// that the caller may read. It returns nil for other zones.
func (s *Server) MissingZone(r *http.Request, state store.Snapshot, zone string) error {
	v, key := (view{stored: state, live: state}), resources.Key{Type: resources.TypeZone, Name: zone}
	if found := v.get(key); found == nil || !s.Reader(r).May(found) {
		return v.missing(key, s.Reader(r))
	}
	return nil
}

// Nearest returns what a 404 about one of the keys says of the most similar names that the caller may read; an empty
// string if there are none.
func (s *Server) Nearest(r *http.Request, state store.Snapshot, keys ...resources.Key) string {
	var near []string
	for _, key := range keys {
		near = append(near, (view{stored: state, live: state}).nearest(key, s.Reader(r))...)
	}
	return suggestion(near)
}

func (s *Server) find(r *http.Request, v view, verb string, key resources.Key) (*resources.Resource, error) {
	key, kri, err := byItsKRI(r, key)
	if err != nil {
		return nil, err
	}
	found, missing := v.locate(r, key, kri, s.Reader(r))
	if found == nil && kri == (resources.KRI{}) && r.URL.Query().Get("zone") == "" {
		found = s.copyIn(v, key)
	}
	if err := s.judge(r, verb, key, found); err != nil && (found == nil || !IsNotFound(err)) {
		return nil, err
	} else if err != nil || found == nil {
		if !s.knows(key.Type) {
			return nil, elsewhere(key.String(), OnGlobal)
		}
		return nil, missing()
	}
	return found, nil
}

// copyIn returns the copy that a key means by the namespace in which copies live, as references name it. The store
// keeps copies without a namespace.
func (s *Server) copyIn(v view, key resources.Key) *resources.Resource {
	if key.Namespace != s.config.Home.SystemNamespace {
		return nil
	}
	key.Namespace = ""
	if found := v.get(key); found != nil && !s.config.Home.Owns(found) {
		return found
	}
	return nil
}

// judge decides about a resource that was found, or not found, under the key of a request.
func (s *Server) judge(r *http.Request, verb string, key resources.Key, found *resources.Resource) error {
	spelled := access.On(verb, key)
	if event := eventOf(verb); event != "" {
		note(r.Context(), event, spelled)
	}
	if found == nil || s.config.Guard == nil {
		return s.authorize(r, spelled)
	}
	if s.authorize(r, access.OnResource(verb, found)) == nil {
		return nil
	}
	if err := s.authorize(r, spelled); err != nil {
		return err
	}
	return NotFound(key.String())
}
