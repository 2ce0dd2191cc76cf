package api

import (
	"net/http"

	"github.com/causeway-mesh/causeway/resources"
)

// maxSteering bounds the body of a request that only names a type, in bytes.
const maxSteering = 4 << 10

// TypeOf returns the type that a request is about: the `type` of the query, or of the body for a POST. Empty means all
// types. A type may be given by its name or by its path.
func TypeOf(r *http.Request) (resources.Type, error) {
	name := r.URL.Query().Get("type")
	if r.Method == http.MethodPost {
		var body struct {
			Type string `json:"type"`
		}
		if err := ReadJSON(r, maxSteering, "type", "the body is not an object with a type: %v", &body); err != nil {
			return "", err
		}
		if body.Type != "" {
			name = body.Type
		}
	}
	if name == "" {
		return "", nil
	}
	if d, ok := resources.Lookup(resources.Type(name)); ok {
		return d.Type, nil
	}
	if d, ok := resources.LookupPath(name); ok {
		return d.Type, nil
	}
	return "", BadField("type", "there is no type %q", name)
}

// KeyOf returns the key of a path of the form {type}/{mesh}/{name}, with the namespace from the query. The mesh of
// types that belong to none is "-".
func KeyOf(r *http.Request) (resources.Key, error) {
	name := r.PathValue("type")
	d, ok := resources.Lookup(resources.Type(name))
	if !ok {
		d, ok = resources.LookupPath(name)
	}
	if !ok {
		return resources.Key{}, BadField("type", "there is no type %q", name)
	}
	key := resources.Key{Type: d.Type, Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace"),
		Name: r.PathValue("name")}
	if d.Scope == resources.ScopeGlobal {
		key.Mesh = ""
	}
	return key, nil
}
