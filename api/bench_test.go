package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// policyBody returns a permission with five matchers as JSON, different for each i.
func policyBody(i int) string {
	var entries []string
	for j := range 5 {
		entries = append(entries, fmt.Sprintf(
			`{"spiffeId":{"type":"Exact","value":"spiffe://default.zone-1.mesh.local/ns/team-%d/sa/client-%d"}}`, i, j))
	}
	return `{"type":"MeshTrafficPermission","mesh":"default","name":"p","labels":{"team":"a"},"spec":{"targetRef":{"kind":"Dataplane","labels":{"app":"backend"}},` +
		`"rules":[{"default":{"allow":[` + strings.Join(entries, ",") + `]}}]}}`
}

// BenchmarkPut measures one changed policy through the whole handler, with a store in memory.
func BenchmarkPut(b *testing.B) {
	s := store.NewMemory()
	if err := api.EnsureDefaultMesh(b.Context(), s, resources.Home{}); err != nil {
		b.Fatal(err)
	}
	server := api.New(api.Config{Store: s})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r := httptest.NewRequest(http.MethodPut, "/meshes/default/meshtrafficpermissions/p", strings.NewReader(policyBody(i)))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != http.StatusOK && w.Code != http.StatusCreated {
			b.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
}

// BenchmarkList measures one page of a list among 2,000 policies.
func BenchmarkList(b *testing.B) {
	s := store.NewMemory()
	if err := api.EnsureDefaultMesh(b.Context(), s, resources.Home{}); err != nil {
		b.Fatal(err)
	}
	server := api.New(api.Config{Store: s})
	for i := range 2000 {
		name := fmt.Sprintf("p-%04d", i)
		body := strings.Replace(policyBody(i), `"name":"p"`, `"name":"`+name+`"`, 1)
		r := httptest.NewRequest(http.MethodPut, "/meshes/default/meshtrafficpermissions/"+name, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		server.ServeHTTP(httptest.NewRecorder(), r)
	}
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/meshes/default/meshtrafficpermissions", nil))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
