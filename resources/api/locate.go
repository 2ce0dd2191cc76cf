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

// locate finds the one resource that a request is about: the one with the key, or, where the query names a `zone`, the one that has
// this name and namespace at home in that zone, however it is named here. The error of one that is not there names the copies
// that are called so at home, and that the reader may read.
func (v view) locate(r *http.Request, key resources.Key, reader *Reader) (*resources.Resource, error) {
	if zone := r.URL.Query().Get("zone"); zone != "" {
		d, ok := resources.Lookup(key.Type)
		if !ok || d.Short == "" {
			return nil, BadField("zone", "a %s is not found by its zone", key.Type)
		}
		kri := resources.KRI{Short: d.Short, Mesh: key.Mesh, Zone: zone, Namespace: key.Namespace, Name: key.Name}
		if found := v.find(kri); found != nil {
			return found, nil
		}
		return nil, NotFound("resource " + kri.String())
	}
	if found := v.get(key); found != nil {
		return found, nil
	}
	return nil, v.missing(key, reader)
}

// missing is a 404 that names what is called so at home: people know that name, and not the one of the copy.
func (v view) missing(key resources.Key, reader *Reader) *Error {
	const shown = 4
	var copies []string
	q := store.Query{Type: key.Type, Mesh: key.Mesh, Labels: map[string]string{resources.LabelDisplayName: key.Name}}
	for r := range v.list(q) {
		if r.Name != key.Name && (key.Namespace == "" || key.Namespace == r.HomeNamespace()) && reader.May(r) {
			copies = append(copies, fmt.Sprintf("%s, the copy of %s", r.Name, cmp.Or(resources.KRIOf(r).String(), r.DisplayName())))
		}
	}
	out := NotFound(key.String())
	if len(copies) == 0 {
		return out
	}
	slices.Sort(copies)
	more := ""
	if n := len(copies) - shown; n > 0 {
		copies, more = copies[:shown], fmt.Sprintf(", and %d more", n)
	}
	out.Detail += "; here is " + strings.Join(copies, "; ") + more + ": ask for it by that name or KRI, or by its own name with ?zone= and ?namespace="
	return out
}
