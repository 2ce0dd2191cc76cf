package inspect_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// routerOf parses the document once.
func routerOf(t *testing.T) routers.Router {
	t.Helper()
	router, err := readDocument()
	if err != nil {
		t.Fatal(err)
	}
	return router
}

var readDocument = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromData(inspect.OpenAPI())
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// TestDocumentHasTheParameters checks that the document lists the query parameters that the table of routes allows.
func TestDocumentHasTheParameters(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(inspect.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range api.Table() {
		var described []string
		for _, p := range doc.Paths.Find(row.Path()).GetOperation(row.Method()).Parameters {
			if p.Value.In == openapi3.ParameterInQuery {
				described = append(described, p.Value.Name)
			}
		}
		taken := row.Parameters()
		slices.Sort(described)
		slices.Sort(taken)
		if !slices.Equal(described, taken) {
			t.Errorf("%s: the document has %q, the table %q", row.Pattern, described, taken)
		}
	}
}

// TestAnswersKeepToTheDocument checks the answers whose contents other tests cover, or that contain times.
func TestAnswersKeepToTheDocument(t *testing.T) {
	const (
		own      = "kri_mt_default_zone-1_shop_own_"
		ownPath  = "/meshes/default/meshtimeouts/own" + inShop
		newPath  = "/meshes/default/meshtimeouts/new"
		document = `{"type": "MeshTimeout", "mesh": "default", "name": "new", "spec": {"to": [{"targetRef": {"kind": "Mesh"}, "default": {"http": {"requestTimeout": "1s"}}}]}}`
		question = `{"to": "backend", "namespace": "shop", "zone": "zone-1", "inbound": "http", "from": "spiffe://default.zone-1.mesh.local/ns/shop/sa/web", "path": "/pay"}`
	)
	for name, c := range map[string]struct{ zone, method, path, body, says string }{
		"explain": {"zone-1", "POST", "/meshes/default/_explain", question, `"verdict"`},
		"explain-dataplane": {"zone-1", "POST", backend + "_inbounds/http/_explain" + inShop,
			`{"from": "spiffe://other/x"}`, `"verdict"`},
		"explain-service": {"zone-1", "POST", "/meshes/default/meshservices/backend/_inbounds/http/_explain" +
			inShop, `{"from": "spiffe://other/x"}`, `"verdict"`},
		"lint":   {"zone-1", "GET", "/meshes/default/_lint", "", `"findings"`},
		"access": {"zone-1", "GET", "/meshes/default/_access?method=GET&path=/pay&size=9", "", `"allowed":1`},
		"access-global": {"", "GET", "/meshes/default/_access?service=backend&callers=2&callersOffset=1", "",
			`"unknown":"each zone keeps`},
		"kri":          {"zone-1", "GET", "/_kri/" + own, "", `"kri": "` + own},
		"kri-explicit": {"zone-1", "GET", "/_kri/" + own + "?form=explicit", "", `"kuma.io/zone": "zone-1"`},
		"kri-k8s":      {"zone-1", "GET", "/_kri/" + own + "?format=k8s", "", `"apiVersion"`},
		"item-by-zone": {"", "GET", "/meshes/default/dataplanes/backend" + inShop + "&zone=zone-1", "",
			hashing.Name("default", "backend", "zone-1", "shop")},
		"layout-by-zone": {"", "GET", backend + "_layout" + inShop + "&zone=zone-2", "",
			`"kri":"kri_dp_default_zone-2_shop_backend_"`},
		"service-by-zone": {"", "GET", "/meshes/default/meshservices/ledger/_policies?namespace=pay&zone=zone-1",
			"", `"kri_msvc_default_zone-1_pay_ledger_"`},
		"touched-by-zone": {"", "GET",
			"/meshes/default/meshservices/ledger/_resources/dataplanes?namespace=pay&zone=zone-1", "", `"total":1`},
		"kri-hashed": {"", "GET", "/_kri/kri_dp_default_zone-1_shop_backend_http", "",
			hashing.Name("default", "backend", "zone-1", "shop")},
		"report-shadow": {"zone-1", "GET", "/_report/shadow?mesh=default", "", `"count":1`},
		"report-of-one": {"zone-1", "GET", "/_report/shadow?policy=kri_mtp_default___other_", "", `"items":[]`},
		"report-denied": {"zone-1", "GET", "/_report/denied?mesh=default&since=1h", "", `"items":[`},
		"suggest-permissions": {"zone-1", "GET", "/_suggest/permissions?dataplane=backend&namespace=shop&since=1h", "",
			`"observed":1`},
		"item": {"zone-1", "GET", ownPath + "&form=explicit", "", `"kuma.io/zone": "zone-1"`},
		"list": {"zone-1", "GET",
			"/meshes/default/meshtimeouts?filter[labels.kuma.io/display-name]=own&size=1", "", own},
		"list-all":       {"zone-1", "GET", "/meshtimeouts?name=own&form=explicit", "", own},
		"overviews":      {"zone-1", "GET", "/meshes/default/dataplanes/_overview", "", `"DataplaneOverview"`},
		"overview":       {"zone-1", "GET", backend + "_overview" + inShop, "", `"DataplaneOverview"`},
		"dry-run":        {"zone-1", "POST", "/_batch?dryRun=server", document, `"dryRun": true`},
		"batch":          {"zone-1", "POST", "/_batch", document, `"created"`},
		"put-dry-run":    {"zone-1", "PUT", newPath + "?dryRun=server", document, `"dryRun": true`},
		"put":            {"zone-1", "PUT", newPath, document, `"revision"`},
		"delete":         {"zone-1", "DELETE", ownPath, "", `"revision"`},
		"index":          {"zone-1", "GET", "/", "", `"zone": "zone-1"`},
		"resource-types": {"zone-1", "GET", "/_resources", "", `"meshtimeouts"`},
		"policy-types":   {"zone-1", "GET", "/policies", "", `"meshtimeouts"`},
		"who-am-i":       {"zone-1", "GET", "/who-am-i", "", "anonymous"},
		"global-insight": {"", "GET", "/global-insight", "", `"MeshTimeout"`},
		"openapi":        {"", "GET", "/openapi.json", "", `"/_kri/{kri}"`},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := newSite(t, c.zone).ask(t, c.method, c.path, c.body)
			if code/100 != 2 || !bytes.Contains(body, []byte(c.says)) {
				t.Errorf("want 2xx with %s, got %d %s", c.says, code, body)
			}
		})
	}
}
