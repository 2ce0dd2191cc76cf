package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
)

// posing makes h respond as a Causeway server does.
func posing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.ServerHeader, api.ModeGlobal)
		h.ServeHTTP(w, r)
	})
}

// TestAnotherServerIsNotBelieved runs commands against what is no Causeway server and says yes to everything, or that
// there is nothing: a portal, a web server, a proxy whose backend is another. No command says that something is done,
// that there is none, or that all is well. Before, a policy was "deleted" and a zone "adopted", there were "no zones"
// and "0 errors", and nothing "allows others".
func TestAnotherServerIsNotBelieved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte("{type: Mesh, name: default}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{
		{"apply", "-f", file}, {"apply", "-f", file, "--dry-run"}, {"delete", "mesh", "default"}, {"delete", "-f", file},
		{"get", "mtp"}, {"get", "mtp", "x"}, {"get", "zones"}, {"zone", "list"}, {"lint"}, {"audit"}, {"auth", "whoami"},
		{"rollout", "status", "mtp", "x"}, {"inspect", "policy", "mtp", "x"}, {"inspect", "sync"},
		{"report", "access"}, {"keys", "list"}, {"secret", "list"}, {"secret", "delete", "a"},
		{"zone", "create", "zone-1"}, {"zone", "adopt", "zone-1"}, {"zone", "disable", "zone-1"},
		{"zone", "resync", "zone-1"}, {"zone", "accept-deletes", "zone-1"}, {"dataplane", "token", "a"},
		{"dataplane", "revoke-token", "a"}, {"proxy", "config", "a"}, {"doctor"}, {"diff", "-f", file},
		{"backup", "create", filepath.Join(dir, "backup")}, {"explain", "--to", "a", "--from", "spiffe://a/b"},
	}
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"an empty object":    {http.StatusOK, "{}"},
		"null":               {http.StatusOK, "null"},
		"an empty list":      {http.StatusOK, `{"items": [], "total": 0}`},
		"a page":             {http.StatusOK, "<html>Welcome</html>"},
		"nothing":            {http.StatusNoContent, ""},
		"that there is none": {http.StatusNotFound, "<html>nginx</html>"},
		"a like error":       {http.StatusNotFound, `{"type": "/std-errors", "status": 404, "title": "Not Found"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			t.Cleanup(other.Close)
			for _, command := range commands {
				var stdout, stderr bytes.Buffer
				status := run(append(command, "--address", other.URL), strings.NewReader(""), &stdout, &stderr)
				if said := stdout.String() + stderr.String(); status == 0 || !strings.Contains(said, "not a Causeway server") {
					t.Errorf("%s: status %d: %s", strings.Join(command, " "), status, said)
				}
			}
		})
	}
}

// TestEarlierServersAreBelieved asks a server that does not send the header, but says in its index what it is.
func TestEarlierServersAreBelieved(t *testing.T) {
	t.Parallel()
	earlier := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			_, _ = w.Write([]byte(`{"product": "Causeway"}`))
			return
		}
		_, _ = w.Write([]byte(`{"items": [], "total": 0, "next": null}`))
	}))
	t.Cleanup(earlier.Close)
	var stdout, stderr bytes.Buffer
	if status := run([]string{"get", "zones", "--address", earlier.URL}, strings.NewReader(""), &stdout, &stderr); status != 0 {
		t.Errorf("status %d: %s", status, stderr.String())
	}
}

// TestAccessReportOfAnEarlierServer asks a server for who may call a zone's services that cannot be asked for what the
// zone's proxies reported: it answers what it knows.
func TestAccessReportOfAnEarlierServer(t *testing.T) {
	t.Parallel()
	earlier := httptest.NewServer(posing(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("reported") {
			_ = api.WriteJSON(w, http.StatusBadRequest, api.BadField("reported", "this request takes no query parameter %q", "reported"))
			return
		}
		_, _ = w.Write([]byte(`{"services": [], "callers": [], "policies": [], "seen": {"unknown": "a global keeps none"}}`))
	})))
	t.Cleanup(earlier.Close)
	var stdout, stderr bytes.Buffer
	status := run([]string{"report", "access", "--zone", "zone-1", "--address", earlier.URL}, strings.NewReader(""), &stdout, &stderr)
	if said := stdout.String() + stderr.String(); status != 0 || !strings.Contains(said, "a global keeps none") {
		t.Errorf("status %d: %s", status, said)
	}
}
