package api

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestTypeOf checks where a request may name the type that it is about.
func TestTypeOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, target, body string
		want                 resources.Type
		fails                bool
	}{
		"nowhere":             {"POST", "/x", "", "", false},
		"an empty object":     {"POST", "/x", "{}", "", false},
		"in the body":         {"POST", "/x", `{"type":"MeshTimeout"}`, resources.TypeMeshTimeout, false},
		"by its path":         {"POST", "/x", `{"type":"meshtimeouts"}`, resources.TypeMeshTimeout, false},
		"in the query":        {"GET", "/x?type=MeshTimeout", "", resources.TypeMeshTimeout, false},
		"in capitals":         {"POST", "/x", `{"Type":"MeshTimeout"}`, "", true},
		"one that is unknown": {"POST", "/x", `{"type":"MeshNothing"}`, "", true},
	} {
		got, err := TypeOf(httptest.NewRequest(c.method, c.target, strings.NewReader(c.body)))
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
