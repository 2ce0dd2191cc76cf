package zone_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// explained asks about a request of the identity of callers and of the gateway.
func (w *world) explained(q explain.Query) (*explain.Answer, error) {
	q.From = "spiffe://default.zone-1.mesh.local/workload/caller"
	return explain.FromSnapshot(w.store.Snapshot(), explain.Options{Zone: w.home.Zone}).Explain(q)
}

// decided returns what an Envoy has counted: of requests, by the policy that decided; of connections, which are kept once
// they are allowed, that they were denied.
func (e *envoy) decided(a *explain.Answer) string {
	if a.Protocol == string(matching.HTTP) {
		return fmt.Sprint(e.stats(`rbac.*policy\.` + a.Policy + `\.(allowed|denied)$`))
	}
	return fmt.Sprint(e.counted(`\.rbac\.denied$`))
}

// agrees asks by a request of the caller, which answers with a status, and compares the verdict of explain with it, and
// what explain names with what Envoy counts.
func (w *world) agrees(e *envoy, q explain.Query, ask func() int, want int) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%s %s: %d", q.To, q.Path, want), func() bool { return ask() == want })
	answer, err := w.explained(q)
	must(w.t, err)
	if answer.Allowed() != (want == http.StatusOK) {
		w.t.Errorf("%s %s: explain says %s, and Envoy answers %d", q.To, q.Path, answer.Verdict, want)
	}
	if answer.Allowed() && answer.Protocol != string(matching.HTTP) {
		return
	}
	before := e.decided(answer)
	eventually(w.t, q.To+" "+q.Path+" is decided by "+answer.Policy, func() bool {
		ask()
		return e.decided(answer) != before
	})
}

const pathsOfCaller = `{type: MeshTrafficPermission, mesh: default, name: paths, spec: {targetRef: {kind: Dataplane, name: inside}, rules: [{default: {
  deny: [{spiffeId: {type: Prefix, value: "spiffe://"}, path: {type: Prefix, value: /open/not}}],
  allow: [{spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/caller"}, path: {type: Prefix, value: /open}}]}}]}}`

// TestExplainBehindAGateway compares explain with Envoys for requests that come by a gateway, whose own identity the
// permissions judge, and for a proxy with patches, which may refuse more. Of a gateway it says no verdict, and no rollout
// counts one for a permission.
func TestExplainBehindAGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(pathsOfCaller)
	inside := w.handler("inside", "inside", answers("inside"))
	port := freePort(t)
	w.gateway(fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	w.route("web", "", to("/", "inside"))
	by := func(path string) func() int {
		return func() int { code, _ := askGateway(outsider(), "http", port, "a.example", path); return code }
	}
	for path, want := range map[string]int{"/open": 200, "/open/not": 403, "/closed": 403} {
		w.agrees(inside, explain.Query{To: "inside", Path: path}, by(path), want)
		w.agrees(inside, explain.Query{To: "inside", Kind: resources.TypeMeshService, Path: path}, by(path), want)
	}
	for _, at := range []string{"edge-1", "edge", "kri_mgw_default_zone-1__edge_"} {
		if answer, err := w.explained(explain.Query{To: at}); err == nil {
			t.Errorf("%s: explain says %s of a gateway, which judges nobody", at, answer.Verdict)
		}
	}
	everywhere := matching.NewSelection(w.resource(`{type: MeshTrafficPermission, mesh: default, name: all, spec: {rules: [{default: {}}]}}`),
		w.home.SystemNamespace, nil)
	for _, name := range []string{"inside", "edge-1"} {
		dp := w.store.Snapshot().Get(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: name})
		if got, want := everywhere.Has(dp), name == "inside"; got != want {
			t.Errorf("a permission counts as enforced by %s: %t, want %t", name, got, want)
		}
	}

	w.apply(`{type: MeshProxyPatch, mesh: default, name: closes, spec: {targetRef: {kind: Dataplane, name: inside}, default: {appendModifications: [
  {httpFilter: {operation: AddAfter, match: {name: self_inbound_dp_main_rbac_http}, value: "{name: closed, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, abort: {http_status: 418, percentage: {numerator: 100}}}}"}}]}}}`)
	eventually(t, "the patch refuses what is allowed", func() bool { return by("/open")() == http.StatusTeapot })
	answer, err := w.explained(explain.Query{To: "inside", Path: "/open"})
	must(t, err)
	if text := strings.Join(answer.Warnings, "\n"); !answer.Allowed() || !strings.Contains(text, "unknown: kri_mpp_default_zone-1__closes_") {
		t.Errorf("the patch refuses it, and explain says %s without a word of it: %s", answer.Verdict, text)
	}
	w.agrees(inside, explain.Query{To: "inside", Path: "/closed"}, by("/closed"), http.StatusForbidden)
}

// TestExplainAtAnEgress compares explain with Envoy for services outside the mesh: the egress judges who calls them. Of
// the service itself it says no verdict, for nobody asks permissions where callers reach it directly.
func TestExplainAtAnEgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "outside") }))
	t.Cleanup(outside.Close)
	w.apply(fmt.Sprintf(`{type: Mesh, name: default, routing: {zoneEgress: true}}
---
{type: MeshExternalService, mesh: default, name: bank, spec: {match: {port: 443, protocol: http}, endpoints: [{address: 127.0.0.1, port: %d}]}}
---
{type: Dataplane, mesh: default, name: out, labels: {kuma.io/workload: egress}, networking: {address: 127.0.0.1, listeners: [{type: ZoneEgress, port: %d, name: way}]}}`,
		outside.Listener.Addr().(*net.TCPAddr).Port, freePort(t)))
	egress := w.startEnvoy(zone.BootstrapConfig{Egress: "out"})
	ports, _ := w.caller("caller", "{kind: MeshExternalService, name: bank}")
	ask := func() int { code, _ := plain(ports[0], "/"); return code }
	q := explain.Query{To: "out", Inbound: "way"}
	w.agrees(egress, q, ask, http.StatusServiceUnavailable)
	rule := func(action, workload string) {
		w.apply(fmt.Sprintf(`{type: MeshTrafficPermission, mesh: default, name: out, spec: {targetRef: {kind: Dataplane, name: out, sectionName: way}, rules: [{default: {%s: [
  {spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/%s"}}]}}]}}`, action, workload))
	}
	rule("allow", "caller")
	w.agrees(egress, q, ask, http.StatusOK)
	rule("deny", "caller")
	w.agrees(egress, q, ask, http.StatusServiceUnavailable)
	rule("allow", "another")
	w.agrees(egress, q, ask, http.StatusServiceUnavailable)
	for _, at := range []string{"bank", "kri_extsvc_default_zone-1__bank_"} {
		if answer, err := w.explained(explain.Query{To: at}); err == nil {
			t.Errorf("%s: explain says %s of what no proxy of the mesh judges", at, answer.Verdict)
		}
	}
}
