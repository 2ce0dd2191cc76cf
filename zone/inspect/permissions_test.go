package inspect_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// questions returns a global that has a zone's backend, its service and a permission.
func questions(t *testing.T) http.Handler {
	t.Helper()
	s := store.NewMemory()
	batch := store.Batch{Ops: []store.Op{
		{Put: mesh(t)},
		{Put: copied(t, resources.TypeDataplane, "payments", "backend",
			`{"networking": {"address": "192.0.2.1", "inbound": [{"name": "main", "port": 80}]}}`)},
		{Put: copied(t, resources.TypeMeshService, "payments", "web",
			`{"selector": {"dataplaneRef": {"name": "backend"}}, "ports": [{"port": 8080, "targetPort": "main", "appProtocol": "http"}]}`)},
		{Put: copied(t, resources.TypeMeshTrafficPermission, "payments", "ours",
			`{"rules": [{"default": {"allow": [{"spiffeId": {"type": "Prefix", "value": "spiffe://td/x"}, "path": {"type": "Exact", "value": "/"}}]}}]}`)},
	}}
	if _, err := s.Apply(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
	server := api.New(api.Config{Store: s, Status: store.NewMemory(), Home: resources.Home{}})
	inspect.RegisterPermissions(server, s, explain.Options{})
	return server
}

// TestExplainRoutes asks in each possible way, and with errors.
func TestExplainRoutes(t *testing.T) {
	server := questions(t)
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/meshes/default/_explain", `{"to": "backend", "from": "spiffe://td/x"}`, 200, `"verdict":"allow"`},
		{"/meshes/default/dataplanes/backend/_inbounds/main/_explain", `{"from": "spiffe://td/x"}`, 200,
			`"policy":"kri_mtp_default_zone-1_payments_ours_"`},
		{"/meshes/default/dataplanes/backend/_inbounds/80/_explain?zone=zone-1&namespace=payments",
			`{"from": "spiffe://td/x", "path": "/y"}`, 200, `"verdict":"deny"`},
		{"/meshes/default/dataplanes/backend/_inbounds/kri_dp_default_zone-1_payments_backend_main/_explain",
			`{"from": "spiffe://td/y"}`, 200, `"policy":"default"`},
		{"/meshes/default/meshservices/web/_inbounds/8080/_explain", `{"from": "spiffe://td/x"}`, 200, `"protocol":"http"`},
		{"/meshes/default/dataplanes/web/_inbounds/8080/_explain", `{"from": "spiffe://td/x"}`, 404, `no Dataplane \"web\"`},
		{"/meshes/default/dataplanes/backend/_inbounds/80/_explain?zone=zone-2", `{"from": "spiffe://td/x"}`, 404,
			`in zone \"zone-2\"`},
		{"/meshes/default/_explain", `{"to": "kri_dp_default_zone-1_payments_backnd_", "from": "spiffe://td/x"}`, 404,
			"the nearest here: kri_dp_default_zone-1_payments_backend_"},
		{"/meshes/defalt/_explain", `{"to": "backend", "from": "spiffe://td/x"}`, 404, "the nearest here: kri_m____default_"},
		{"/meshes/default/_explain", `{"to": "backend"}`, 400, `"field": "from"`},
		{"/meshes/default/_explain", `{"whereto": "backend"}`, 400, `unknown field`},
		{"/meshes/default/_explain", strings.Repeat(" ", 70_000), 413, `is larger than`},
	} {
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body)))
		if recorder.Code != c.status || !strings.Contains(recorder.Body.String(), c.want) {
			t.Errorf("%s %.80s: %d %s\nwant %d %s", c.path, c.body, recorder.Code, recorder.Body, c.status, c.want)
		}
	}
}

// TestLintRoute checks that the answer is a list, and that of a mesh that does not exist nothing is said to be well.
func TestLintRoute(t *testing.T) {
	server := questions(t)
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/meshes/default/_lint", nil))
	var got inspect.Findings
	if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil || len(got.Findings) != 1 {
		t.Errorf("%v %s", err, recorder.Body)
	}
	recorder = httptest.NewRecorder()
	server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/meshes/defalt/_lint", nil))
	if recorder.Code != http.StatusNotFound ||
		!strings.Contains(recorder.Body.String(), "the nearest here: kri_m____default_") {
		t.Errorf("a mesh that does not exist: %d %s", recorder.Code, recorder.Body)
	}
}
