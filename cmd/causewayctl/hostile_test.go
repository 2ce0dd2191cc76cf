package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// maxHostile limits how much a command prints of a hostile server's failure, in bytes.
const maxHostile = 64 << 10

// TestHostileServers runs commands against servers that try to abuse them: to have a request made elsewhere with the
// caller's rights, or to fill the terminal or the memory.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	victim := httptest.NewServer(posing(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		_, _ = w.Write([]byte(`{"items":[],"total":0}`))
	})))
	t.Cleanup(victim.Close)
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte("{type: Mesh, name: default}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{
		{"apply", "-f", file}, {"apply", "-f", file, "--dry-run=server"}, {"diff", "-f", file}, {"get", "zones"},
		{"doctor"}, {"audit"}, {"keys", "list"},
		{"explain", "--to", "a", "--from", "spiffe://a/b"}, {"rollout", "status", "meshtimeout", "a"},
		{"delete", "mesh", "default"}, {"backup", "create", filepath.Join(t.TempDir(), "b")},
	}
	endless := strings.Repeat("x", 1<<16)
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		says  string
	}{
		"another server": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, victim.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}, "is not followed"},
		"a long error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			for range 1 << 11 {
				if _, err := w.Write([]byte(endless)); err != nil {
					return
				}
			}
		}, "xxx"},
		"many errors": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"title":%q,"detail":%q}`, endless, endless)
		}, "xxx"},
		"a long way": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://"+endless)
			w.WriteHeader(http.StatusFound)
		}, "is not followed"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			hostile := httptest.NewServer(posing(c.serve))
			t.Cleanup(hostile.Close)
			for _, command := range commands {
				var out bytes.Buffer
				cmd := exec.Command(filepath.Join(programs(), "causewayctl"),
					append(append([]string{}, command...), "--address", hostile.URL, "--timeout", "20s")...)
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Run(); err == nil || out.Len() > maxHostile || !strings.Contains(out.String(), c.says) {
					t.Errorf("%s: %v, %d bytes: %.300s", command, err, out.Len(), out.String())
				}
			}
		})
	}
	t.Cleanup(func() {
		if n := reached.Load(); n > 0 {
			t.Errorf("%d requests went to another server", n)
		}
	})
	if out, err := exec.Command(filepath.Join(programs(), "causewayctl"), "get", "zones", "--address",
		victim.URL).CombinedOutput(); err != nil || reached.Swap(0) == 0 {
		t.Errorf("the twin: %v: %s", err, out)
	}
}
