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

// Reader says which resources the asker of one request may read, by their homes. A nil Reader may read everything.
type Reader struct {
	allows func(access.Action) bool
}

// Reader is for handlers whose answer is made of several resources: they leave out what it may not read, and say how much that is.
func (s *Server) Reader(r *http.Request) *Reader { return s.readerOf(r.Context()) }

func (s *Server) readerOf(ctx context.Context) *Reader {
	judged(ctx)
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

// May reports whether a resource may be read.
func (x *Reader) May(r *resources.Resource) bool {
	return x == nil || x.allows(access.OnResource(resources.VerbRead, r))
}

// MayKRI is May for what a KRI names, whether or not it is there.
func (x *Reader) MayKRI(kri resources.KRI) bool {
	return x == nil || x.allows(access.OnKRI(resources.VerbRead, kri))
}

// unread stands in texts for the KRI of what may not be read.
const unread = "(what you may not read)"

var kriInText = regexp.MustCompile(`kri_[A-Za-z0-9_.-]+`)

// Text is a text for people without the KRIs of what may not be read, nor anything that begins as one and cannot be told.
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

// texts is Text for each of a list.
func (x *Reader) texts(list []string) []string {
	for i := range list {
		list[i] = x.Text(list[i])
	}
	return list
}

// Zone reports whether what is known of a zone may be read.
func (x *Reader) Zone(name string) bool {
	return x == nil || x.allows(access.On(resources.VerbRead, resources.Key{Type: resources.TypeZone, Name: name}))
}

// insightOf reports whether what was seen of a resource may be read, which is at home where the resource is.
func (x *Reader) insightOf(r *resources.Resource) bool {
	return x == nil || x.allows(access.On(resources.VerbRead, resources.Key{Type: insightOf(r.Type), Mesh: r.Mesh, Namespace: r.HomeNamespace(), Name: r.DisplayName()}))
}

// hidden counts the resources of a query's type and mesh that may not be read. What else a request selects does not count, so that
// the number tells nothing of what they are.
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

// Find is the one resource that a request is about: Locate, for who may do the verb with it. What is judged is its home, and, where
// there is none, what the request says. Whoever may not is told the same, whether or not there is something.
func (s *Server) Find(r *http.Request, state store.Snapshot, verb string, key resources.Key) (*resources.Resource, error) {
	return s.find(r, view{stored: state, live: state}, verb, key)
}

func (s *Server) find(r *http.Request, v view, verb string, key resources.Key) (*resources.Resource, error) {
	key, kri, err := byItsKRI(r, key)
	if err != nil {
		return nil, err
	}
	found, missing := v.locate(r, key, kri, s.Reader(r))
	if err := s.judge(r, verb, key, found); err != nil && (found == nil || !IsNotFound(err)) {
		return nil, err
	} else if err != nil || found == nil {
		return nil, missing()
	}
	return found, nil
}

// judge decides about a resource that was found, or not, under the key of a request.
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
