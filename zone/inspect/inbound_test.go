package inspect_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// copied returns a resource of zone-1 as the global stores it.
func copied(t *testing.T, typ resources.Type, namespace, name, spec string) *resources.Resource {
	t.Helper()
	s, err := resources.NewSpec(typ, []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	home := resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}
	r := home.Labelled(&resources.Resource{Key: resources.Key{Type: typ, Mesh: "default", Namespace: namespace,
		Name: name}, Spec: s})
	r.Name, r.Namespace = hashing.Name("default", name, "zone-1", namespace), ""
	return r
}

func mesh(t *testing.T) *resources.Resource {
	t.Helper()
	s, err := resources.NewSpec(resources.TypeMesh, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return &resources.Resource{Key: resources.Key{Type: resources.TypeMesh, Name: "default"}, Spec: s}
}

// TestOnTheGlobal requests a Dataplane under its hashed name, and its inbound by the KRI that is the same everywhere.
func TestOnTheGlobal(t *testing.T) {
	s := store.NewMemory()
	dp := copied(t, resources.TypeDataplane, "payments", "backend",
		`{"networking": {"address": "192.0.2.1", "inbound": [{"name": "main", "port": 80}]}}`)
	batch := store.Batch{Ops: []store.Op{
		{Put: dp},
		{Put: mesh(t)},
		{Put: copied(t, resources.TypeMeshTrafficPermission, "payments", "ours",
			`{"rules": [{"default": {"allow": [{"spiffeId": {"type": "Prefix", "value": "spiffe://td/x"}, "path": {"type": "Exact", "value": "/"}}]}}]}`)},
		{Put: copied(t, resources.TypeMeshTrafficPermission, "elsewhere", "theirs", `{"rules": [{"default": {}}]}`)},
	}}
	if _, err := s.Apply(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
	server := api.New(api.Config{Store: s, Home: resources.Home{}})
	inspect.Register(server, inspect.Config{Store: s})
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/meshes/default/dataplanes/"+dp.Name+
		"/_inbounds/kri_dp_default_zone-1_payments_backend_main/_policies", nil))
	var got inspect.InboundPolicies
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	const kri = "kri_mtp_default_zone-1_payments_ours_"
	if len(got.Policies) != 1 || len(got.Policies[0].Rules) != 1 || got.Policies[0].Rules[0].Origin != kri ||
		got.Policies[0].Origins[0].KRI != kri {
		t.Fatalf("%s", answer.Body)
	}
	if len(got.Policies[0].Warnings) != 2 { // the prefix ends inside a segment, and TCP has no path
		t.Errorf("warnings %q", got.Policies[0].Warnings)
	}
}
