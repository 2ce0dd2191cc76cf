package inspect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/go-cmp/cmp"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/callers"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// site is a server with the resources of testdata/mesh.yaml, and the document that its answers must match.
type site struct {
	handler http.Handler
	store   *store.Memory
	router  routers.Router
}

// newSite reads the resources as they are in zone-1, where the policies labelled `from: global` are copies. If zone is
// empty, it reads them as the global has them, with a second zone that has a Dataplane with the same labels.
func newSite(t *testing.T, zone string) *site {
	t.Helper()
	data, err := os.ReadFile("testdata/mesh.yaml")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := resources.DecodeDocuments(data, resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{store: store.NewMemory()}
	var batch store.Batch
	for _, r := range docs {
		from := "zone-1"
		if written, ok := r.Labels["from"]; ok {
			from = strings.TrimPrefix(written, "global")
			delete(r.Labels, "from")
		}
		if zone != "" && from != zone && r.Type == resources.TypeDataplane {
			continue
		}
		batch.Ops = append(batch.Ops, store.Op{Put: asAt(r, from, zone)})
	}
	if _, err := s.store.Apply(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
	server := api.New(api.Config{Store: s.store, Home: resources.Home{Zone: zone}})
	inspect.Register(server, inspect.Config{Store: s.store, Zone: zone})
	inspect.RegisterPermissions(server, s.store, explain.Options{Zone: zone})
	journal := accesslog.NewJournal(time.Now(), 0)
	who := callers.Config{Store: s.store, Status: s.store, Zone: zone, Journal: journal, Collecting: true}
	if zone == "" {
		who.Journal = nil
	}
	callers.Register(server, who)
	if zone == "" {
		s.handler, s.router = server, routerOf(t)
		return s
	}
	journal.Add(observed(), "/pay", time.Now())
	accesslog.Register(server, accesslog.Config{Store: s.store, Journal: journal, Collecting: true})
	s.handler = server
	s.router = routerOf(t)
	return s
}

// observed returns a request that succeeded, and would not if shadow denials were enforced.
func observed() accesslog.Observation {
	return accesslog.Observation{
		Inbound: "kri_dp_default_zone-1_shop_backend_http", Client: "spiffe://default.zone-1.mesh.local/ns/shop/sa/web",
		Method: "GET", PathPrefix: "/pay",
		Allowed: true, Policy: "kri_mtp_default___base_", ShadowPolicy: "kri_mtp_default___base_",
	}
}

// asAt returns a resource written in zone from as a server has it: in zone at, or on the global if at is empty.
func asAt(r *resources.Resource, from, at string) *resources.Resource {
	r = resources.Home{Zone: from}.Labelled(r)
	if from != at && r.Type != resources.TypeMesh {
		var extra []string
		for _, label := range []string{resources.LabelZone, resources.LabelNamespace} {
			if v := r.Labels[label]; v != "" {
				extra = append(extra, v)
			}
		}
		r.Name, r.Namespace = hashing.Name(r.Mesh, r.Name, extra...), ""
	}
	return r
}

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

// ask makes a request and checks it and its answer against the document.
func (s *site) ask(t *testing.T, method, path, body string) (int, []byte) {
	t.Helper()
	request := func() *http.Request {
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		return r
	}
	answer := httptest.NewRecorder()
	s.handler.ServeHTTP(answer, request())
	r := request()
	route, params, err := s.router.FindRoute(r)
	if err != nil {
		t.Fatalf("%s %s is not in the document: %v", method, path, err)
	}
	asked := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
	if err := openapi3filter.ValidateRequest(context.Background(), asked); err != nil && answer.Code == http.StatusOK {
		t.Errorf("%s %s: the document refuses the request: %v", method, path, err)
	}
	answered := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: asked, Status: answer.Code, Header: answer.Header(),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	answered.SetBodyBytes(answer.Body.Bytes())
	if err := openapi3filter.ValidateResponse(context.Background(), answered); err != nil {
		t.Errorf("%s %s: the document refuses the answer: %v", method, path, err)
	}
	return answer.Code, answer.Body.Bytes()
}

const (
	backend = "/meshes/default/dataplanes/backend/"
	inShop  = "?namespace=shop"
)

// TestAnswers compares each endpoint's whole answer with testdata, and checks it against the document.
func TestAnswers(t *testing.T) {
	hashed := "/meshes/default/dataplanes/" + hashing.Name("default", "backend", "zone-1", "shop") + "/"
	for name, c := range map[string]struct{ zone, path string }{
		"rules":            {"zone-1", backend + "_rules" + inShop},
		"rules-global":     {"", hashed + "_rules"},
		"policies":         {"zone-1", backend + "_policies" + inShop},
		"layout":           {"zone-1", backend + "_layout" + inShop},
		"inbound":          {"zone-1", backend + "_inbounds/kri_dp_default_zone-1_shop_backend_http/_policies" + inShop},
		"outbound-port":    {"zone-1", backend + "_outbounds/kri_msvc_default_zone-1_pay_ledger_http/_policies" + inShop},
		"outbound-service": {"zone-1", backend + "_outbounds/kri_msvc_default_zone-1_shop_backend_/_policies" + inShop},
		"touched":          {"zone-1", "/meshes/default/meshtimeouts/own/_resources/dataplanes" + inShop},
		"touched-all":      {"", "/meshes/default/meshtrafficpermissions/base/_resources/dataplanes?size=2"},
		"touched-last":     {"", "/meshes/default/meshtrafficpermissions/base/_resources/dataplanes?size=2&offset=2"},
		"touched-target":   {"zone-1", "/meshes/default/traffictargets/insiders/_resources/dataplanes" + inShop},
		"service":          {"zone-1", "/meshes/default/meshservices/ledger/_policies?namespace=pay"},
		"service-global": {"", "/meshes/default/meshservices/" + hashing.Name("default", "ledger", "zone-1", "pay") +
			"/_policies"},
		"touched-service": {"zone-1", "/meshes/default/meshservices/backend/_resources/dataplanes" + inShop},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := newSite(t, c.zone).ask(t, http.MethodGet, c.path, "")
			if code != http.StatusOK {
				t.Fatalf("%d %s", code, body)
			}
			golden(t, name, body)
		})
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

func golden(t *testing.T, name string, body []byte) {
	t.Helper()
	got := bytes.TrimSpace(indented(t, body))
	file := filepath.Join("testdata", "answers", name+".json")
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
		t.Errorf("run with -update after a look at the change:\n%s", diff)
	}
}

func indented(t *testing.T, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestErrors checks that a request that cannot be answered gets an error object that names the correct form.
func TestErrors(t *testing.T) {
	s := newSite(t, "zone-1")
	for path, want := range map[string]int{
		"/meshes/other/dataplanes/backend/_rules":                                                                     404,
		backend + "_rules":                                                                                            404,
		backend + "_layout?namespace=other":                                                                           404,
		backend + "_outbounds/backend/_policies?namespace=shop":                                                       400,
		backend + "_outbounds/kri_msvc_default_zone-1_shop_nobody_/_policies?namespace=shop":                          404,
		backend + "_outbounds/kri_msvc_default_zone-1_shop_backend_other/_policies?namespace=shop":                    404,
		backend + "_inbounds/kri_dp_default_zone-1_shop_backend_other/_policies?namespace=shop":                       404,
		"/meshes/default/meshes/default/_resources/dataplanes":                                                        404,
		"/meshes/default/meshtimeouts/nobody/_resources/dataplanes":                                                   404,
		"/meshes/other/meshtimeouts/own/_resources/dataplanes":                                                        404,
		"/meshes/default/meshtimeouts/own/_resources/dataplanes?namespace=shop&size=0":                                400,
		"/meshes/default/meshtimeouts/own/_resources/dataplanes?namespace=shop&offset=-1":                             400,
		"/meshes/default/dataplanes/backend/_inbounds/kri_dp_default_zone-1_shop_other_http/_policies?namespace=shop": 400,
		"/meshes/default/meshservices/nobody/_policies":                                                               404,
		"/meshes/default/meshtimeouts/own/_policies?namespace=shop":                                                   404,
		"/meshes/other/meshservices/backend/_policies":                                                                404,
		"/_kri/backend": 400,
		"/_kri/kri_mt_default_zone-1_shop_nobody_":                404,
		"/_kri/kri_mt_default_zone-1_shop_own_?form=short":        400,
		"/_kri/kri_mt_default_zone-1_shop_own_?format=toml":       400,
		"/_report/shadow?policy=base":                             400,
		"/_report/denied?since=yesterday":                         400,
		"/_report/denied?size=0":                                  400,
		"/_suggest/permissions":                                   400,
		"/_suggest/permissions?dataplane=nobody":                  404,
		"/_suggest/permissions?dataplane=backend&since=yesterday": 400,
		"/nothings":                                    404,
		"/meshes/default/dataplanes?size=0":            400,
		"/meshes/default/dataplanes/backend/_overview": 404,
	} {
		code, body := s.ask(t, http.MethodGet, path, "")
		var e api.Error
		if err := json.Unmarshal(body, &e); err != nil || code != want || e.Detail == "" {
			t.Errorf("%s: want %d, got %d %s", path, want, code, body)
		}
	}
}

// TestMissingNamesTheCopies checks the error for a caller that asks the global for a Dataplane by its name in its zone:
// the error names the copies.
func TestMissingNamesTheCopies(t *testing.T) {
	s := newSite(t, "")
	for path, copies := range map[string][]string{
		backend + "_rules": {"zone-1", "zone-2"}, backend + "_layout" + inShop: {"zone-1", "zone-2"},
		backend + "_layout?namespace=other":  nil,
		"/meshes/default/dataplanes/backend": {"zone-1", "zone-2"}, backend + "_overview": {"zone-1", "zone-2"},
		backend + "_rules?zone=zone-3&namespace=shop": nil,
	} {
		code, body := s.ask(t, http.MethodGet, path, "")
		named := 0
		for _, zone := range copies {
			if bytes.Contains(body, []byte(hashing.Name("default", "backend", zone, "shop")+
				", the copy of kri_dp_default_"+zone+"_shop_backend_")) {
				named++
			}
		}
		if code != http.StatusNotFound || named != len(copies) || len(copies) == 0 && bytes.Contains(body, []byte("copy")) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// TestConditions checks that a policy, when read, shows which of its parts have no effect.
func TestConditions(t *testing.T) {
	for _, zone := range []string{"zone-1", ""} {
		s := newSite(t, zone)
		for _, policy := range []struct {
			typ  resources.Type
			name string
			want []string
		}{
			{resources.TypeMeshTimeout, "own", nil},
			{resources.TypeMeshRetry, "astray",
				[]string{"ResolvedRefs False NotResolved to[0].targetRef: MeshService nobody resolves to nothing"}},
			{resources.TypeTrafficTarget, "insiders",
				[]string{"ResolvedRefs False NotResolved rules[1]: TCPRoute nothing resolves to nothing"}},
			{resources.TypeMeshTrafficPermission, "by-tags", []string{
				"Accepted False PartlyIneffective from[0].targetRef: identities carry no tags",
				"Accepted False SelectsNothing selects no Dataplane"}},
		} {
			var found *resources.Resource
			for r := range s.store.Snapshot().List(store.Query{Type: policy.typ,
				Labels: map[string]string{resources.LabelDisplayName: policy.name}}) {
				found = r
			}
			path := "/meshes/default/" + found.Descriptor().Path + "/" + found.Name + "?namespace=" + found.Namespace
			answer := httptest.NewRecorder()
			s.handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
			var got struct {
				Status struct{ Conditions []resources.Condition }
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, answer.Body)
			}
			var texts []string
			for _, c := range got.Status.Conditions {
				texts = append(texts, strings.Join([]string{c.Type, c.Status, c.Reason, c.Message}, " "))
			}
			if !slices.EqualFunc(texts, policy.want, strings.HasPrefix) {
				t.Errorf("zone %q, %s: want %q, got %q", zone, policy.name, policy.want, texts)
			}
		}
	}
}

// TestFresh checks that an answer reflects a change at once, and that a zone does not show a policy that does not reach
// it.
func TestFresh(t *testing.T) {
	s := newSite(t, "zone-1")
	const path = "/meshes/default/dataplanes/backend/_inbounds/kri_dp_default_zone-1_shop_backend_admin/_policies?namespace=shop"
	_, before := s.ask(t, http.MethodGet, path, "")
	base := s.store.Snapshot().Get(resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
		Name: hashing.Name("default", "base")})
	if base == nil {
		t.Fatal("no policy base")
	}
	if _, err := s.store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Delete: base.Key}}}); err != nil {
		t.Fatal(err)
	}
	_, after := s.ask(t, http.MethodGet, path, "")
	if kri := []byte(resources.KRIOf(base).String()); !bytes.Contains(before, kri) || bytes.Contains(after, kri) {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
	server := api.New(api.Config{Store: s.store})
	inspect.Register(server,
		inspect.Config{Store: s.store, Crosses: func(*resources.Resource, string) bool { return false }})
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer,
		httptest.NewRequest(http.MethodGet, "/meshes/default/dataplanes/backend/_rules?namespace=shop", nil))
	if strings.Contains(answer.Body.String(), "kri_mt_default___defaults_") ||
		!strings.Contains(answer.Body.String(), "kri_mt_default_zone-1_shop_own_") {
		t.Errorf("%s", answer.Body)
	}
}
