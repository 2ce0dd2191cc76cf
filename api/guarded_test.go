package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets" //nolint:depguard // a guard of tests issues tokens, whose keys are sealed
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/web" //nolint:depguard // the page that servers have
)

// guardedServer returns an API on loopback that keeps an audit log in dir.
func guardedServer(t *testing.T, dir string, s access.Settings) (*httptest.Server, *access.Guard) {
	t.Helper()
	memory := store.NewMemory()
	if err := api.EnsureDefaultMesh(t.Context(), memory, resources.Home{}); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := tokens.Open(t.Context(), tokens.Config{Keeper: secrets.NewKeeper(memory, box), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := access.Open(t.Context(), s, access.Parts{DataDir: dir, Store: memory, Issuer: issuer, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	handler := api.New(api.Config{Store: memory, Guard: guard, Page: web.New()})
	handler.Handle(api.RouteReplicas,
		func(w http.ResponseWriter, _ *http.Request) error { return api.WriteJSON(w, http.StatusOK, "open") })
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close()
		if err := guard.Audit().Close(); err != nil {
			t.Error(err)
		}
	})
	return server, guard
}

func ask(t *testing.T, s *httptest.Server, method, path, body string, headers ...string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw := new(strings.Builder)
	if err := resp.Write(raw); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, raw.String()
}

const retry = `{"type": "MeshTimeout", "mesh": "default", "name": "a", "spec": {"to": [{"targetRef": {"kind": "Mesh"}, "default": {"connectionTimeout": "1s"}}]}}`

// TestTooManyRequests checks that requests without a credential are limited by address, and those of a user by name.
func TestTooManyRequests(t *testing.T) {
	server, _ := guardedServer(t, t.TempDir(),
		access.Settings{RequireCredential: true, Limits: access.Limits{FailuresPerSecond: 0.0001, FailuresBurst: 3}})
	for i := range 5 {
		want := http.StatusUnauthorized
		if i >= 3 {
			want = http.StatusTooManyRequests
		}
		if status, _ := ask(t, server, http.MethodGet, "/meshes", ""); status != want {
			t.Errorf("request %d: status %d, want %d", i+1, status, want)
		}
	}
}

// TestSecurityHeaders checks that every response forbids browsers to run or keep its content.
func TestSecurityHeaders(t *testing.T) {
	server, _ := guardedServer(t, t.TempDir(), access.Settings{})
	for _, path := range []string{"/meshes", "/nothing", "/meshes/default"} {
		_, answer := ask(t, server, http.MethodGet, path, "")
		for _, header := range []string{"X-Content-Type-Options: nosniff",
			"Content-Security-Policy: default-src 'none'", "Cache-Control: no-store", "X-Frame-Options: DENY"} {
			if !strings.Contains(answer, header) {
				t.Errorf("%s: no %s", path, header)
			}
		}
	}
}

// FuzzGuardedRequests checks that no body and no credentials in the headers cause a panic, give access or lead to a
// 500.
func FuzzGuardedRequests(f *testing.F) {
	f.Add("Bearer a.b.c", "application/json", "http://evil", "cross-site", retry)
	f.Add("Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJ4In0.", "application/yaml", "null", "none", "a: &a [*a]")
	f.Add("Basic cm9vdDo=", "text/plain; charset", "", "", "{")
	f.Add("Bearer  ", "application/json;;", "http://127.0.0.1", "same-origin",
		`{"type":"AccessRole","name":"x","spec":{"rules":[{"verbs":["*"],"types":["*"]}]}}`)
	dir := f.TempDir()
	memory := store.NewMemory()
	guard, err := access.Open(f.Context(), access.Settings{},
		access.Parts{DataDir: dir, Store: memory, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = guard.Audit().Close() })
	handler := api.New(api.Config{Store: memory, Guard: guard, Page: web.New()})
	f.Fuzz(func(t *testing.T, authorization, contentType, origin, site, body string) {
		for _, path := range []string{"/_batch", "/tokens/user", "/_can-i"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.Header["Authorization"], r.Header["Content-Type"] = []string{authorization}, []string{contentType}
			r.Header["Origin"], r.Header["Sec-Fetch-Site"] = []string{origin}, []string{site}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code < 400 || w.Code >= 500 {
				t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
			}
		}
	})
}

// FuzzBodies checks that a body from an admin is stored or refused by field, and never leads to a 500.
func FuzzBodies(f *testing.F) {
	f.Add("application/json", retry)
	f.Add("application/yaml",
		"type: AccessRoleBinding\nname: a\nspec: {subjects: [{type: User, name: x}], roles: [admin]}")
	f.Add("application/yaml", "--- \n---\ntype: Mesh\nname: m\n")
	f.Add("application/json", `{"type":"Secret","name":"token-signing","spec":{}}`)
	handler := api.New(api.Config{Store: store.NewMemory()})
	f.Fuzz(func(t *testing.T, contentType, body string) {
		for _, path := range []string{"/_batch", "/_batch?dryRun=server", "/tokens/user", "/_can-i"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.Header["Content-Type"] = []string{contentType}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code >= 500 {
				t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
			}
		}
	})
}

// TestBatchOfAList checks that a batch may be a sequence of documents or one list of them, in JSON and in YAML. Other
// items in a list are refused with their position.
func TestBatchOfAList(t *testing.T) {
	server, _ := guardedServer(t, t.TempDir(), access.Settings{})
	other := strings.ReplaceAll(retry, `"a"`, `"b"`)
	yaml := "- {type: MeshTimeout, mesh: default, name: c, spec: {to: [{targetRef: {kind: Mesh}, default: {idleTimeout: 1h}}]}}\n- type: MeshTimeout\n  mesh: default\n  name: d\n  spec: {to: [{targetRef: {kind: Mesh}, default: {idleTimeout: 1h}}]}\n"
	for _, tt := range []struct {
		body, contentType string
		status            int
		want              []string
	}{
		{retry, "application/json", 200, []string{`"created"`}},
		{"[" + retry + "," + other + "]", "application/json", 200, []string{`"unchanged"`, `"created"`, `"name": "b"`}},
		{retry + other, "application/json", 200, []string{`"unchanged"`}},
		{yaml, "application/yaml", 200, []string{`"name": "c"`, `"name": "d"`}},
		{"[]", "application/json", 400, []string{"the body has no resource"}},
		{"[" + retry + ", 7]", "application/json", 400,
			[]string{"want an object with type, name and spec, got a number", `"document": 2`}},
		{"[[" + retry + "]]", "application/json", 400, []string{"got a list"}},
		{"[" + retry + "]" + other, "application/json", 400, []string{"got a list", `"document": 1`}},
		{"[" + retry + "," + strings.Replace(other, `"spec"`, `"sepc"`, 1) + "]", "application/json", 400,
			[]string{`sepc`, `"document": 2`}},
		{"[" + retry, "application/json", 400, []string{"ends inside a list"}},
		{"[" + strings.Repeat("null,", 1000) + "null]", "application/json", 400, []string{"more than 1000 documents"}},
	} {
		status, answer := ask(t, server, http.MethodPost, "/_batch", tt.body, "Content-Type", tt.contentType)
		if status != tt.status {
			t.Errorf("%.80s: %d\n%s", tt.body, status, answer)
		}
		for _, want := range tt.want {
			if !strings.Contains(answer, want) {
				t.Errorf("%.80s: no %s in\n%s", tt.body, want, answer)
			}
		}
	}
	if status, answer := ask(t, server, http.MethodPut, "/meshes/default/meshtimeouts/a",
		"["+retry+"]"); status != http.StatusBadRequest {
		t.Errorf("PUT of a list: %d\n%s", status, answer)
	}
}
