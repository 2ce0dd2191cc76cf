package inspect_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestRouteBackends checks that a missing backend is a condition of its route, and a warning wherever the route is
// shown.
func TestRouteBackends(t *testing.T) {
	s := newSite(t, "zone-1")
	docs, err := resources.DecodeDocuments([]byte(`
type: MeshHTTPRoute
mesh: default
namespace: shop
name: lost
spec:
  targetRef: {kind: Dataplane, labels: {app: backend}}
  to:
    - targetRef: {kind: MeshService, name: ledger, namespace: pay}
      rules:
        - default:
            filters: [{type: RequestMirror, requestMirror: {backendRef: {kind: MeshService, name: silent}}}]
            backendRefs: [{kind: MeshService, name: gone}]
`), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Apply(t.Context(),
		store.Batch{Ops: []store.Op{{Put: asAt(docs[0], "zone-1", "zone-1")}}}); err != nil {
		t.Fatal(err)
	}
	const (
		share  = "to[0].rules[0].default.backendRefs[0]: MeshService gone resolves to nothing, its share of the traffic fails"
		mirror = "to[0].rules[0].default.filters[0].requestMirror.backendRef: MeshService silent resolves to nothing, no copies are sent"
		proxy  = "/meshes/default/dataplanes/backend/"
	)
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer,
		httptest.NewRequest(http.MethodGet, "/meshes/default/meshhttproutes/lost?namespace=shop", nil))
	if body := answer.Body.String(); !strings.Contains(body, share) || !strings.Contains(body, mirror) ||
		strings.Count(body, resources.ConditionResolvedRefs) != 2 || strings.Contains(body, resources.ConditionAccepted+`"`) {
		t.Errorf("conditions: want both backends as %s: %s", resources.ConditionResolvedRefs, body)
	}
	for path, want := range map[string]int{
		proxy + "_rules?namespace=shop": 1,
		proxy + "_outbounds/kri_msvc_default_zone-1_pay_ledger_http/_policies?namespace=shop": 1,
		proxy + "_outbounds/kri_msvc_default_zone-1_shop_backend_/_policies?namespace=shop":   0,
	} {
		code, raw := s.ask(t, http.MethodGet, path, "")
		if body := string(raw); code != http.StatusOK || strings.Count(body, share) != want ||
			strings.Count(body, mirror) != want {
			t.Errorf("%s: want each backend %d times: %d %s", path, want, code, body)
		}
	}
}
