package api

import (
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// isKRI reports whether a name in a path is a KRI. Names have no underscores.
func isKRI(name string) bool { return strings.HasPrefix(name, "kri_") }

// byItsKRI returns the key and the KRI of a read request that names a resource by its KRI.
func byItsKRI(r *http.Request, key resources.Key) (resources.Key, resources.KRI, error) {
	if !isKRI(key.Name) {
		return key, resources.KRI{}, nil
	}
	kri, err := resources.ParseKRI(key.Name)
	if err != nil {
		return key, kri, BadField("name", "%v", err)
	}
	if d, _ := resources.LookupShort(kri.Short); d == nil || d.Type != key.Type || kri.Mesh != key.Mesh {
		return key, kri, BadField("name", "%s is not a %s of this path", kri, key.Type)
	}
	for name, want := range map[string]string{"namespace": kri.Namespace, "zone": kri.Zone} {
		if said := r.URL.Query().Get(name); said != "" && said != want {
			return key, kri, BadField(name, "is %q, and %q in the KRI: leave it out", said, want)
		}
	}
	key.Namespace, key.Name = kri.Namespace, kri.Name
	return key, kri.WithSection(""), nil
}
