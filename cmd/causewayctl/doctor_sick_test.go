package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/server"
)

// TestDoctorOfASickServer examines a server with a wrong clock, a store and an audit log that cannot be written, and no
// connection to its global.
func TestDoctorOfASickServer(t *testing.T) {
	t.Parallel()
	pages := http.NewServeMux()
	pages.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		fmt.Fprint(w, `{"product":"Causeway","version":"v9.0.0"}`)
	})
	pages.HandleFunc("GET "+server.ReadyPage, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "store: the disk is full", http.StatusServiceUnavailable)
	})
	pages.HandleFunc("POST /_can-i", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, `{"status":503,"title":"Service Unavailable","detail":%q}`, access.ErrAudit.Error())
	})
	pages.HandleFunc("GET /_sync", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"zone":"z","connected":false,"types":[{"type":"Mesh","direction":"toZone"}]}`)
	})
	pages.HandleFunc("GET /meshes", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"items":[{"type":"Mesh","name":"default"}],"next":null}`)
	})
	pages.HandleFunc("GET /meshes/default/dataplanes/_overview", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"items":[{"mesh":"default","name":"backend"}],"next":null}`)
	})
	pages.HandleFunc("GET /_rollout/Mesh/-/default", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"revision":1,"stored":true,"proxies":{"behind":[{"mesh":"default","name":"frontend","reason":"no such filter"}]}}`)
	})
	pages.HandleFunc("GET /meshexternalservices", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"items":[{"type":"MeshExternalService","mesh":"default","name":"bank","status":{"conditions":[{"type":"Egress","status":"False","reason":"NoEgress","message":"no proxy of this zone reaches it"}]}}],"next":null}`)
	})
	pages.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE causeway_panics_total counter\ncauseway_panics_total{serving=\"xds\"} 0\ncauseway_panics_total{serving=\"kds\"} 2\n"+
			"causeway_kubernetes_followed{type=\"Mesh\"} 0\ncauseway_kubernetes_held_deletions{type=\"MeshTimeout\"} 7\n"+
			"causeway_kubernetes_definition_differs{type=\"MeshRetry\"} 1\n"+
			"causeway_discovery_behind_seconds{kind=\"Pod\"} 75.2\ncauseway_discovery_behind_seconds{kind=\"Node\"} 0\n"+
			"causeway_discovery_held_objects{kind=\"Service\"} 12\ncauseway_discovery_held_objects{kind=\"Pod\"} 0\n"+
			"causeway_discovery_problems{reason=\"NoMesh\"} 3\n"+
			"causeway_discovery_problems{reason=\"NoAddress\"} 2\ncauseway_discovery_problems{reason=\"OtherCA\"} 40\n")
	})
	sick := httptest.NewServer(posing(pages))
	defer sick.Close()
	c := &cli{address: sick.URL, timeout: time.Minute}
	client, err := api.NewClient(api.ClientConfig{Address: sick.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	d, err := c.diagnose(t.Context(), client, &doctorFlags{diagnostics: sick.URL})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	if err := d.print(&all); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"not followed for 1m15s", "left out of a list and kept: 12", "as written: 3", "reason=NoMesh",
		"ingress without an address: 2", "other zones do not reach services of this one", "trust another CA than this zone's: 40", "MeshRetry", "of another version than the server"} {
		if !strings.Contains(all.String(), what) {
			t.Errorf("it does not say %q", what)
		}
	}
	for check, what := range map[string]string{
		"clock": "1h0m0s behind", "readiness": "not ready: store: the disk is full", "audit log": "audit",
		"sync":    "not connected to the global",
		"proxies": "no such filter", "panics": "2 since the server started", "keys": "Not Found",
		"kubernetes": "deletions held: 7", "egress": "no proxy of this zone reaches it",
	} {
		found := false
		for _, f := range d.Findings {
			found = found || f.Check == check && strings.Contains(f.What, what) && f.Status != findingOK
		}
		if !found {
			t.Errorf("%s: nothing like %q in\n%s", check, what, &all)
		}
	}
}
