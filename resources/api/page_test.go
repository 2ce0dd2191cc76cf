package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/access"
)

// Who has no credential gets the page, with which a person signs in, and nothing else.
func TestPageNeedsNoCredential(t *testing.T) {
	server, _ := guardedServer(t, t.TempDir(), access.Settings{})
	stranger := []string{"X-Forwarded-For", "192.0.2.1"} // came by a proxy: nobody's admin
	for _, c := range []struct {
		name, method, path, body string
		status                   int
	}{
		{"the page", http.MethodGet, "/ui/", "", http.StatusOK},
		{"one of its views", http.MethodGet, "/ui/why?from=x", "", http.StatusOK},
		{"a file that it has not", http.MethodGet, "/ui/assets/none.js", "", http.StatusNotFound},
		{"a write to it", http.MethodPost, "/ui/", "{}", http.StatusMethodNotAllowed},
		{"the API", http.MethodGet, "/meshes", "", http.StatusUnauthorized},
		{"a name that begins alike", http.MethodGet, "/uix", "", http.StatusUnauthorized},
		{"the API by way of the page", http.MethodGet, "/ui/../meshes", "", http.StatusNotFound},
		{"the API by way of the page, encoded", http.MethodGet, "/ui/%2e%2e/meshes", "", http.StatusNotFound},
		{"the API behind an empty segment", http.MethodGet, "//ui/meshes", "", http.StatusUnauthorized},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, answer := ask(t, server, c.method, c.path, c.body, stranger...)
			if status != c.status {
				t.Errorf("%s %s: %d, want %d\n%s", c.method, c.path, status, c.status, answer)
			}
			if !strings.Contains(answer, "default-src 'none';") {
				t.Errorf("%s %s: no policy for browsers:\n%s", c.method, c.path, answer)
			}
			if strings.Contains(answer, `"mesh"`) {
				t.Errorf("%s %s tells of the mesh:\n%s", c.method, c.path, answer)
			}
		})
	}
}
