package callers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/callers"
	"github.com/causeway-mesh/causeway/zone/explain"
)

const (
	shop = "spiffe://default.zone-1.mesh.local/ns/shop/sa/"
	pay  = "spiffe://default.zone-1.mesh.local/ns/pay/sa/"
)

// site is a zone server with the resources of testdata/mesh.yaml.
type site struct {
	*api.Server

	store   *store.Memory
	journal *accesslog.Journal
	// meanwhile is called while a dry run is answered, if it is set.
	meanwhile func()
}

func newSite(t testing.TB) *site {
	t.Helper()
	data, err := os.ReadFile("testdata/mesh.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{store: store.NewMemory(), journal: accesslog.NewJournal(time.Now(), 0)}
	s.put(t, string(data))
	s.Server = api.New(api.Config{Store: s.store, Home: resources.Home{Zone: "zone-1"}})
	s.AddPreview(func(*api.Preview) error {
		if s.meanwhile != nil {
			s.meanwhile()
		}
		return nil
	})
	callers.Register(s.Server, callers.Config{Store: s.store, Status: s.store, Zone: "zone-1", Journal: s.journal, Collecting: true})
	return s
}

func (s *site) put(t testing.TB, text string) {
	t.Helper()
	docs, err := resources.DecodeDocuments([]byte(text), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var batch store.Batch
	for _, r := range docs {
		home := resources.Home{Zone: "zone-1"}
		if r.Type == resources.TypeMeshTrafficPermission {
			home.Zone = ""
		}
		batch.Ops = append(batch.Ops, store.Op{Put: home.Labelled(r)})
	}
	if _, err := s.store.Apply(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
}

func (s *site) ask(t testing.TB, query string) *callers.Answer {
	t.Helper()
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/meshes/default/_access?"+query, nil))
	answer := &callers.Answer{}
	if err := json.Unmarshal(recorder.Body.Bytes(), answer); err != nil || recorder.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", query, recorder.Code, recorder.Body)
	}
	return answer
}

// cellOf returns the cell of a caller at a service. One that is not in the answer is denied.
func cellOf(t testing.TB, a *callers.Answer, service, caller string) (callers.Cell, string) {
	t.Helper()
	column := slices.IndexFunc(a.Callers, func(c callers.Caller) bool { return c.SpiffeID == caller })
	row := slices.IndexFunc(a.Services, func(s callers.Service) bool { return s.Name+" "+s.Port == service })
	if column < 0 || row < 0 {
		t.Fatalf("no service %s or caller %s in %+v", service, caller, a)
	}
	for _, c := range a.Services[row].Cells {
		if c.Caller == column {
			return c, a.Policies[c.Policy]
		}
	}
	return callers.Cell{Caller: column, Verdict: callers.Deny}, "default"
}

// TestCells names what each kind of cell looks like.
func TestCells(t *testing.T) {
	t.Parallel()
	a := newSite(t).ask(t, "")
	for _, want := range []struct{ service, caller, verdict, policy, dependsOn, shadow string }{
		{"backend http", shop + "backend", "allow", "kri_mtp_default___shop_", "", ""},
		{"backend http", shop + "web", "depends", "kri_mtp_default___shop_", "method", ""},
		{"backend http", pay + "audit", "allow", "kri_mtp_default___shop_", "", "deny"},
		{"backend http", pay + "ledger", "depends", "default", "proxy", ""},
		{"ledger tcp", shop + "web", "deny", "kri_mtp_default___pay_", "", ""},
		{"ledger tcp", pay + "audit", "allow", "kri_mtp_default___pay_", "", ""},
		{"audit 80", pay + "audit", "depends", "kri_mtp_default___reports_", "method path", ""},
		{"web http", shop + "backend", "deny", "default", "", ""},
		{"backend-1 admin", shop + "backend", "allow", "kri_mtp_default___shop_", "", ""},
	} {
		c, policy := cellOf(t, a, want.service, want.caller)
		if c.Verdict != want.verdict || policy != want.policy || strings.Join(c.DependsOn, " ") != want.dependsOn || c.Shadow != want.shadow {
			t.Errorf("%s from %s: %+v by %s, want %+v", want.service, want.caller, c, policy, want)
		}
	}
	known := newSite(t)
	if c, _ := cellOf(t, known.ask(t, "method=DELETE"), "backend http", shop+"web"); c.Verdict != "deny" {
		t.Errorf("DELETE: %+v", c)
	}
	if c, _ := cellOf(t, known.ask(t, "method=GET&path=/reports/1"), "audit 80", pay+"audit"); c.Verdict != "allow" {
		t.Errorf("GET /reports/1: %+v", c)
	}
	if c, policy := cellOf(t, known.ask(t, "path=/other"), "audit 80", pay+"audit"); c.Verdict != "deny" || policy != "default" {
		t.Errorf("/other: %+v by %s", c, policy)
	}
}

// TestCellsAgreeWithExplain asks explain about every service and caller, with several requests. What a cell calls certain
// must be the answer to all of them, and where it depends, there must be both answers.
func TestCellsAgreeWithExplain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put(t, moreTraffic)
	a := s.ask(t, "")
	world := explain.FromSnapshot(s.store.Snapshot(), explain.Options{Zone: "zone-1"})
	cells := 0
	for i := range a.Services {
		service := &a.Services[i]
		if service.Proxies == 0 {
			continue
		}
		for _, caller := range a.Callers {
			c, _ := cellOf(t, a, service.Name+" "+service.Port, caller.SpiffeID)
			got := verdicts(t, world, service.KRI, caller.SpiffeID)
			if want := map[string]string{"allow": "allow", "deny": "deny", "depends": "allow deny"}[c.Verdict]; got != want {
				t.Errorf("%s from %s: cell %+v, explain says %s", service.KRI, caller.SpiffeID, c, got)
			}
			cells++
		}
	}
	if cells < 20 {
		t.Errorf("only %d cells", cells)
	}
}

const moreTraffic = `
type: HTTPRouteGroup
mesh: default
namespace: shop
name: pages
spec: {matches: [{name: home, methods: [GET], pathRegex: /home}]}
---
type: TrafficTarget
mesh: default
namespace: shop
name: pages
spec:
  destination: {kind: ServiceAccount, name: web}
  sources: [{kind: ServiceAccount, name: backend}]
  rules: [{kind: HTTPRouteGroup, name: pages, matches: [home]}]
---
type: Dataplane
mesh: default
namespace: shop
name: web
labels: {app: web, k8s.kuma.io/service-account: web}
networking: {address: 192.0.2.3, inbound: [{name: http, port: 80, protocol: http}]}
`

// verdicts returns all answers that proxies of a service give to several requests.
func verdicts(t *testing.T, world *explain.World, service, caller string) string {
	t.Helper()
	found := map[string]bool{}
	for _, method := range []string{"GET", "DELETE"} {
		for _, path := range []string{"/", "/reports", "/internal", "/home"} {
			answer, err := world.Explain(explain.Query{Mesh: "default", To: service, From: caller, Method: method, Path: path})
			if err != nil {
				t.Fatal(err)
			}
			found[answer.Verdict] = true
			for _, p := range answer.Proxies {
				found[p.Verdict] = true
			}
		}
	}
	out := []string{}
	for verdict := range found {
		out = append(out, verdict)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestCellsFollowChanges changes what a cell depends on, one thing after the other.
func TestCellsFollowChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	is := func(want, service, caller string) {
		t.Helper()
		if c, policy := cellOf(t, s.ask(t, ""), service, caller); c.Verdict != want {
			t.Errorf("%s from %s: %+v by %s, want %s", service, caller, c, policy, want)
		}
	}
	is("deny", "web http", pay+"audit")
	s.put(t, `{type: MeshTrafficPermission, mesh: default, name: web, spec: {targetRef: {kind: Dataplane, labels: {app: web}},
  rules: [{default: {allow: [{spiffeId: {type: Exact, value: "`+pay+`audit"}}]}}]}}`)
	is("allow", "web http", pay+"audit")
	s.put(t, `{type: Dataplane, mesh: default, namespace: shop, name: web, labels: {app: other, k8s.kuma.io/service-account: web},
  networking: {address: 192.0.2.3, inbound: [{name: http, port: 80}]}}`)
	is("deny", "web http", pay+"audit")
	is("depends", "audit 80", pay+"audit")
	s.put(t, `{type: MeshService, mesh: default, namespace: pay, name: audit,
  spec: {selector: {dataplaneLabels: {matchLabels: {app: audit}}}, ports: [{port: 80, appProtocol: tcp}]}}`)
	is("deny", "audit 80", pay+"audit")
	if _, err := s.store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Delete: resources.Key{
		Type: resources.TypeMeshTrafficPermission, Mesh: "default", Name: "pay"}}}}); err != nil {
		t.Fatal(err)
	}
	is("deny", "ledger tcp", pay+"audit")
	s.put(t, moreTraffic)
	is("depends", "web http", shop+"backend")
}

// TestSeen lays what proxies reported over the cells, by method and path too.
func TestSeen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	add := func(client, method, path string, allowed bool) {
		s.journal.Add(accesslog.Observation{Inbound: "kri_dp_default_zone-1_shop_backend-2_http", Client: client, Method: method,
			PathPrefix: path, Allowed: allowed, Policy: "default"}, path, time.Now())
	}
	add(shop+"web", "GET", "/a", true)
	add(shop+"web", "GET", "/b", true)
	add(shop+"web", "DELETE", "/a", false)
	add("spiffe://elsewhere/x", "GET", "/a", false)
	c, _ := cellOf(t, s.ask(t, ""), "backend http", shop+"web")
	if c.Allowed != 2 || c.Denied != 1 || c.LastSeen.IsZero() {
		t.Errorf("%+v", c)
	}
	if c, _ := cellOf(t, s.ask(t, "method=GET&path=/a"), "backend http", shop+"web"); c.Allowed != 1 || c.Denied != 0 {
		t.Errorf("GET /a: %+v", c)
	}
	stranger, policy := cellOf(t, s.ask(t, ""), "backend http", "spiffe://elsewhere/x")
	if stranger.Verdict != "deny" || policy != "default" || stranger.Denied != 1 {
		t.Errorf("a stranger who tried: %+v by %s", stranger, policy)
	}
}

// TestSelection pages and filters on both sides, and refuses what it cannot read.
func TestSelection(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	all := s.ask(t, "")
	if all.Total != len(all.Services) || all.TotalCallers != len(all.Callers) || all.Total < 5 || all.TotalCallers != 4 {
		t.Fatalf("%d of %d services, %d of %d callers", len(all.Services), all.Total, len(all.Callers), all.TotalCallers)
	}
	part := s.ask(t, "size=2&offset=1&callers=1&callersOffset=2")
	if len(part.Services) != 2 || part.Services[0].KRI != all.Services[1].KRI || part.Callers[0] != all.Callers[2] || part.Total != all.Total {
		t.Errorf("a part: %+v", part)
	}
	if one := s.ask(t, "namespace=pay&service=led&caller="+url.QueryEscape("sa/web")); one.Total != 1 || one.TotalCallers != 1 {
		t.Errorf("one: %+v", one)
	}
	if none := s.ask(t, "zone=zone-9&offset=7"); none.Total != 0 || len(none.Services) != 0 {
		t.Errorf("none: %+v", none)
	}
	for query, field := range map[string]string{"size=501": "size", "callers=0": "callers", "offset=-1": "offset", "method=get": "method",
		"path=reports": "path", "zone=A_b": "zone", "callersOffset=x": "callersOffset", "service=%00": "service"} {
		recorder := httptest.NewRecorder()
		s.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/meshes/default/_access?"+query, nil))
		if recorder.Code != http.StatusBadRequest || !strings.Contains(recorder.Body.String(), `"`+field+`"`) {
			t.Errorf("%s: %d %s", query, recorder.Code, recorder.Body)
		}
	}
}
