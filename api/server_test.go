package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is one server over HTTP, with its stores.
type fixture struct {
	store, status *store.Memory
	client        *api.Client
	url           string
}

func serve(t *testing.T, home resources.Home, prepare ...func(*api.Server)) *fixture {
	t.Helper()
	return serveConfig(t, api.Config{Home: home}, prepare...)
}

// serveConfig is serve with a configuration.
func serveConfig(t *testing.T, cfg api.Config, prepare ...func(*api.Server)) *fixture {
	t.Helper()
	f := &fixture{store: store.NewMemory(), status: store.NewMemory()}
	cfg.Store, cfg.Status, cfg.Version = f.store, f.status, "v0"
	server := api.New(cfg)
	for _, p := range prepare {
		p(server)
	}
	srv := httptest.NewServer(server)
	client, err := api.NewClient(api.ClientConfig{Address: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	f.client, f.url = client, srv.URL
	t.Cleanup(func() {
		client.CloseIdleConnections()
		srv.Close()
	})
	if err := api.EnsureDefaultMesh(context.Background(), f.store, cfg.Home); err != nil {
		t.Fatal(err)
	}
	return f
}

func global(t *testing.T) *fixture { return serve(t, resources.Home{}) }

func alone(t *testing.T) *fixture {
	return serve(t, resources.Home{Zone: "zone-1", Alone: true})
}

// call makes a request. The error, if any, is the API's.
func (f *fixture) call(t *testing.T, method, path, body string) (string, *api.Error) {
	t.Helper()
	path, query, _ := strings.Cut(path, "?")
	r := api.Request{Method: method, Path: path}
	if body != "" {
		r.Body = []byte(body)
		r.ContentType = "application/yaml"
		if strings.HasPrefix(body, "{") {
			r.ContentType = "application/json"
		}
	}
	if query != "" {
		r.Path += "?" + query
	}
	raw, err := f.client.Do(context.Background(), r)
	var e *api.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	return string(raw), e
}

func (f *fixture) mustCall(t *testing.T, method, path, body string) string {
	t.Helper()
	out, err := f.call(t, method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return out
}

func permission(name string) string {
	return fmt.Sprintf("type: MeshTrafficPermission\nmesh: default\nname: %s\nspec: {default: {allow: [{spiffeId: {type: Prefix, value: 'spiffe://a/ns/'}}]}}\n", name)
}

// TestBrokenDocuments sends each document of package resources' table and checks that nothing of its file is stored and
// that the response names a field.
func TestBrokenDocuments(t *testing.T) {
	f := alone(t)
	f.mustCall(t, "PUT", "/meshes/default/meshtrafficpermissions/p", permission("p"))
	archive, err := txtar.ParseFile("../resources/testdata/broken.txtar")
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string][]byte{"empty": {}, "only-comments": []byte("# nothing\n")}
	for _, file := range archive.Files {
		if !strings.HasSuffix(file.Name, ".problems") {
			bodies[file.Name] = file.Data
		}
	}
	bodies["unknown-mesh"] = []byte(strings.ReplaceAll(permission("p"), "mesh: default", "mesh: nowhere"))
	bodies["same-twice"] = []byte(permission("p") + "---\n" + permission("p"))
	bodies["read-only-type"] = []byte("type: ZoneInsight\nname: zone-1\n")
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			before := contents(f.store)
			good := []byte(permission("good") + "---\n")
			contentType := "application/yaml"
			if strings.HasSuffix(name, ".json") {
				good, contentType = []byte(`{"type":"Mesh","name":"good"}`+"\n"), "application/json"
			}
			for _, sent := range [][]byte{body, append(good, body...)} {
				_, err := f.client.ApplyDocuments(context.Background(), sent, contentType)
				if len(body) < 20 && len(sent) > 20 {
					continue // no document follows the good one
				}
				var e *api.Error
				if !errors.As(err, &e) || e.Status < 400 || e.Status > 499 {
					t.Fatalf("want a 4xx, got %v", err)
				}
				if len(e.InvalidParameters) == 0 || e.InvalidParameters[0].Field == "" ||
					e.InvalidParameters[0].Reason == "" || e.Title == "" {
					t.Errorf("the error names no field: %+v", e)
				}
				if after := contents(f.store); after != before {
					t.Fatalf("the store changed\nbefore:\n%s\nafter:\n%s", before, after)
				}
			}
		})
	}
}

// contents returns everything in a store, with revisions.
func contents(s store.Store) string {
	var b strings.Builder
	snapshot := s.Snapshot()
	fmt.Fprintln(&b, snapshot.Revision())
	for _, d := range resources.Descriptors() {
		for r := range snapshot.List(store.Query{Type: d.Type}) {
			fmt.Fprintln(&b, r.Key, r.Revision, string(r.Spec.JSON()), r.Labels)
		}
	}
	return b.String()
}

func TestTooLargeBody(t *testing.T) {
	f := alone(t)
	before := contents(f.store)
	body := permission("p") + "# " + strings.Repeat("x", 5<<20)
	for _, path := range []string{"/_batch", "/meshes/default/meshtrafficpermissions/p"} {
		method := "PUT"
		if path == "/_batch" {
			method = "POST"
		}
		_, e := f.call(t, method, path, body)
		if e == nil || e.Status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: want 413, got %v", path, e)
		}
	}
	if contents(f.store) != before {
		t.Error("something was stored")
	}
}

func TestItemLifecycle(t *testing.T) {
	f := global(t)
	const path = "/meshes/default/meshtrafficpermissions/p"
	status := func(method, body, contentType string) (int, string) {
		req, err := http.NewRequest(method, f.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", contentType)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		defer http.DefaultClient.CloseIdleConnections()
		return resp.StatusCode, readBody(t, resp)
	}
	if code, body := status("PUT", permission("p"), "application/yaml"); code != 201 ||
		body != "{\n \"revision\": 2,\n \"result\": \"created\"\n}\n" {
		t.Errorf("create: got %d %q", code, body)
	}
	if code, _ := status("PUT", permission("p"), "application/yaml; charset=utf-8"); code != 200 {
		t.Errorf("unchanged: got %d", code)
	}
	if code, _ := status("PUT", permission("p"), "text/plain"); code != 415 {
		t.Errorf("plain text: got %d", code)
	}
	if code, _ := status("PUT", permission("q"), "application/yaml"); code != 400 {
		t.Errorf("another name: got %d", code)
	}
	if code, body := status("GET", "", ""); code != 200 || !strings.Contains(body, ` "kri": "kri_mtp_default___p_"`) ||
		!strings.Contains(body, "\n \"spec\": {") {
		t.Errorf("get: got %d %s", code, body)
	}
	if code, body := status("DELETE", "", ""); code != 200 || body != "{\n \"revision\": 3\n}\n" {
		t.Errorf("delete: got %d %q", code, body)
	}
	if code, _ := status("DELETE", "", ""); code != 404 {
		t.Errorf("delete again: got %d", code)
	}
}

func TestWhatServersSendIsAccepted(t *testing.T) {
	f := alone(t)
	f.mustCall(t, "PUT", "/meshes/default/meshtrafficpermissions/p", permission("p"))
	shown := f.mustCall(t, "GET", "/meshes/default/meshtrafficpermissions/p", "")
	before := f.store.Snapshot().Revision()
	f.mustCall(t, "PUT", "/meshes/default/meshtrafficpermissions/p", shown)
	k8s := f.mustCall(t, "GET", "/meshes/default/meshtrafficpermissions/p?format=k8s", "")
	f.mustCall(t, "PUT", "/meshes/default/meshtrafficpermissions/p", k8s)
	if after := f.store.Snapshot().Revision(); after != before {
		t.Errorf("sending back what was shown wrote: revision %d, was %d", after, before)
	}
}

func TestWarnings(t *testing.T) {
	f := global(t)
	body := strings.ReplaceAll(permission("p"), "/ns/'", "/ns'")
	out := f.mustCall(t, "PUT", "/meshes/default/meshtrafficpermissions/p", body)
	if !strings.Contains(out, `"warnings"`) || !strings.Contains(out, "spec.default.allow[0].spiffeId.value") {
		t.Errorf("got %s", out)
	}
}

func readBody(t *testing.T, resp *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
