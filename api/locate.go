package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// locate returns the resource that a request is about: the one with the KRI, if there is one; or, if the query names a
// `zone`, the one with this name and namespace at home in that zone, whatever its name here; or else the one with the
// key. It also returns a function that builds the error if no such resource exists, or none that the reader may know
// of.
func (v view) locate(r *http.Request, key resources.Key, kri resources.KRI, reader *Reader) (*resources.Resource,
	func() error) {
	if zone := r.URL.Query().Get("zone"); zone != "" && kri == (resources.KRI{}) {
		d, ok := resources.Lookup(key.Type)
		if !ok || d.Short == "" {
			return nil, func() error { return BadField("zone", "a %s cannot be looked up by its zone", key.Type) }
		}
		kri = resources.KRI{Short: d.Short, Mesh: key.Mesh, Zone: zone, Namespace: key.Namespace, Name: key.Name}
	}
	if kri != (resources.KRI{}) {
		return v.find(kri), func() error { return v.missingKRI(key, kri, reader) }
	}
	return v.get(key), func() error { return v.missing(key, reader) }
}

// Limits on the names in a 404, and on the resources that it examines.
const (
	shownNames    = 4
	scannedOfType = 10_000
)

// missingKRI is missing for a KRI.
func (v view) missingKRI(key resources.Key, kri resources.KRI, reader *Reader) *Error {
	out := NotFound("resource " + kri.String())
	out.Detail += suggestion(v.nearest(key, reader))
	return out
}

// missing returns a 404 that suggests resources that the reader may read: those with that name at home or in another
// namespace, because people do not know the names of copies, and otherwise those with a similar name.
func (v view) missing(key resources.Key, reader *Reader) *Error {
	out := NotFound(key.String())
	var called, near []string
	q := store.Query{Type: key.Type, Mesh: key.Mesh, Labels: map[string]string{resources.LabelDisplayName: key.Name}}
	for r := range v.list(q) {
		if r.Key == key || !reader.May(r) {
			continue
		}
		what := cmp.Or(resources.KRIOf(r).String(), r.DisplayName())
		switch {
		case r.Name != key.Name && (key.Namespace == "" || key.Namespace == r.HomeNamespace()):
			called = append(called, r.Name+", the copy of "+what)
		case r.HomeNamespace() != key.Namespace:
			near = append(near, what)
		}
	}
	if len(called) > 0 {
		out.Detail += "; here is " + someOf(called, "; ") +
			": ask for it by that name or KRI, or by its own name with ?zone= and ?namespace="
		return out
	}
	if len(near) == 0 {
		near = v.nearest(key, reader)
	}
	out.Detail += suggestion(near)
	return out
}

// suggestion returns the end of a 404's detail that names similar resources; an empty string if there are none.
func suggestion(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return "; the nearest here: " + someOf(near, ", ")
}

// nearest returns the names most similar to a key's, of resources that the reader may read.
func (v view) nearest(key resources.Key, reader *Reader) []string {
	seen, best := 0, len(key.Name)/3+2
	var out []string
	for r := range v.list(store.Query{Type: key.Type, Mesh: key.Mesh}) {
		if seen++; seen > scannedOfType {
			break
		}
		distance := resources.EditDistance(key.Name, r.DisplayName(), best+1)
		if distance > best || !reader.May(r) {
			continue
		}
		if distance < best {
			out, best = nil, distance
		}
		out = append(out, cmp.Or(resources.KRIOf(r).String(), r.DisplayName()))
	}
	return out
}

// someOf joins the first names and counts the rest.
func someOf(names []string, between string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	more := ""
	if n := len(names) - shownNames; n > 0 {
		names, more = names[:shownNames], fmt.Sprintf(", and %d more", n)
	}
	return strings.Join(names, between) + more
}
