package inspect_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/tokens"
)

// issuingServer returns an API on loopback, and the issuer of its users' tokens.
func issuingServer(t *testing.T) (*httptest.Server, *tokens.Issuer) {
	t.Helper()
	memory, log := store.NewMemory(), slog.New(slog.DiscardHandler)
	if err := api.EnsureDefaultMesh(t.Context(), memory, resources.Home{}); err != nil {
		t.Fatal(err)
	}
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := tokens.Open(t.Context(), tokens.Config{Keeper: secrets.NewKeeper(memory, box), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := access.Open(t.Context(), access.Settings{}, access.Parts{DataDir: t.TempDir(), Store: memory,
		Issuer: issuer, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Config{Store: memory, Guard: guard}))
	t.Cleanup(func() {
		server.Close()
		if err := guard.Audit().Close(); err != nil {
			t.Error(err)
		}
	})
	return server, issuer
}

// TestDeniedWritesTellNothing compares what is said of a write to something that is there with what is said of one to
// something that is not: the same to who may not read it, and what is missing to who may.
func TestDeniedWritesTellNothing(t *testing.T) {
	server, issuer := issuingServer(t)
	const role = `{"type": "AccessRole", "name": "%[1]s", "spec": {"rules": [{"verbs": [%[2]s], "types": ["MeshTimeout"], "meshes": ["default"], "names": [%[3]s]}]}}`
	const binding = `{"type": "AccessRoleBinding", "name": "%[1]s", "spec": {"subjects": [{"type": "User", "name": "%[1]s"}], "roles": ["%[1]s", "writer"]}}`
	tokensOf := map[string]string{}
	for user, rule := range map[string][2]string{
		"writer": {`"read", "create", "update"`, `"mine"`}, "reader": {`"read"`, `"a", "b"`},
	} {
		body := "[" + fmt.Sprintf(role, user, rule[0], rule[1]) + "," + fmt.Sprintf(binding, user) + "]"
		if status, answer := askOf(t, server, http.MethodPost, "/_batch", body); status != http.StatusOK {
			t.Fatal(answer)
		}
		var err error
		if tokensOf[user], _, err = issuer.Issue(t.Context(),
			tokens.Claims{Audience: tokens.AudienceUser, Subject: user}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if status, answer := askOf(t, server, http.MethodPost, "/_batch", timeoutA); status != http.StatusOK {
		t.Fatal(answer)
	}
	absent := strings.ReplaceAll(timeoutA, `"a"`, `"b"`)
	for _, c := range []struct{ method, there, not, user, verb string }{
		{http.MethodPut, "/meshes/default/meshtimeouts/a", "/meshes/default/meshtimeouts/b", "writer", "create"},
		{http.MethodPost, "/_batch", "/_batch", "writer", "create"},
		{http.MethodPost, "/_batch?dryRun=server", "/_batch?dryRun=server", "writer", "create"},
		{http.MethodPut, "/meshes/default/meshtimeouts/a", "", "reader", "update"},
	} {
		said := func(path, body, name string) string {
			status, answer := askOf(t, server, c.method, path, body, "Authorization", "Bearer "+tokensOf[c.user])
			want := "lacks the permission: " + c.verb + ` MeshTimeout \"` + name + `\"`
			if status != http.StatusForbidden || !strings.Contains(answer, want) {
				t.Errorf("%s %s of %s: %d, want %s:\n%s", c.method, path, c.user, status, want, answer)
			}
			return answer
		}
		said(c.there, timeoutA, "a")
		if c.not != "" {
			said(c.not, absent, "b")
		}
	}
}

const timeoutA = `{"type": "MeshTimeout", "mesh": "default", "name": "a", "spec": {"to": [
  {"targetRef": {"kind": "Mesh"}, "default": {"connectionTimeout": "1s"}}]}}`

// askOf returns the status and the body of an answer.
func askOf(t *testing.T, s *httptest.Server, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}
