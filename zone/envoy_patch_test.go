package zone_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// patchProblem waits until the insight of a Dataplane says a text.
func (w *world) patchProblem(dataplane, text string) {
	w.t.Helper()
	soon(w.t, func() error {
		insight := w.status.Snapshot().Get(resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default",
			Name: dataplane})
		if insight == nil || !strings.Contains(string(insight.Spec.JSON()), text) {
			return fmt.Errorf("the insight does not say %q: %v", text, insight)
		}
		return nil
	})
}

// TestPatchesInEnvoy shows each kind of modification of a MeshProxyPatch in a real Envoy, that what is refused changes
// nothing, and that what Envoy refuses costs that policy only.
func TestPatchesInEnvoy(t *testing.T) {
	t.Parallel()
	w := newTraced(t)
	dump := func(resource string) string { return w.caller.get("/config_dump?resource=" + resource) }
	patch := func(name, labels, modifications string) {
		w.apply(fmt.Sprintf(`{type: MeshProxyPatch, mesh: default, name: %s, labels: {%s}, spec: {targetRef: {kind: Dataplane, name: caller-1}, default: {appendModifications: [%s]}}}`,
			name, labels, modifications))
	}
	has := func(what, resource, text string) {
		t.Helper()
		eventually(t, what, func() bool { return strings.Contains(dump(resource), text) })
	}
	patch("p", "", `{cluster: {operation: Patch, match: {origin: outbound}, value: "connect_timeout: 7.7s"}}`)
	has("a merged value", "dynamic_active_clusters", `"7.700s"`)
	patch("p", "", `{cluster: {operation: Patch, match: {origin: outbound}, jsonPatches: [{op: replace, path: /connectTimeout, value: 8.8s}]}}`)
	has("a JSON patch", "dynamic_active_clusters", `"8.800s"`)
	patch("p", "", `{listener: {operation: Patch, match: {origin: outbound}, value: "per_connection_buffer_limit_bytes: 77777"}}`)
	has("a listener", "dynamic_listeners", `77777`)
	patch("p", "", `{networkFilter: {operation: Patch, match: {name: envoy.filters.network.http_connection_manager},
	  value: "{name: a, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, server_header_transformation: APPEND_IF_ABSENT, server_name: patched}}"}}`)
	soon(t, func() error {
		got := askPlain(w.port, "/")
		if got.header.Get("Server") != "patched" {
			return fmt.Errorf("%d, server %q", got.status, got.header.Get("Server"))
		}
		return nil
	})
	patch("p", "", `{httpFilter: {operation: AddFirst, match: {origin: outbound}, value: "{name: teapot, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, abort: {http_status: 418, percentage: {numerator: 100}}}}"}}`)
	soon(t, func() error { return want(askPlain(w.port, "/"), http.StatusTeapot) })
	patch("p", "", `{virtualHost: {operation: Patch, match: {origin: outbound}, jsonPatches: [{op: add, path: /routes/0, value: {match: {path: /gone}, directResponse: {status: 410}}}]}}`)
	soon(t, func() error {
		return firstOf(want(askPlain(w.port, "/gone"), http.StatusGone), want(askPlain(w.port, "/"), http.StatusOK))
	})

	// A script is refused of whom does not have the verb, and works for who does. Nothing else moves for the refusal.
	const script = `{httpFilter: {operation: AddFirst, match: {origin: outbound}, value: "{name: lua, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: \"function envoy_on_response(h) h:headers():add('x-lua', 'a') end\"}}}"}}`
	patch("script", "", script)
	w.patchProblem("caller-1", "kri_mpp_default_zone-1__script_: appendModifications[0].httpFilter.value: brings the extension envoy.extensions.filters.http.lua")
	must(t, want(askPlain(w.port, "/gone"), http.StatusGone))
	patch("script", `causeway.io/unguarded: "true"`, script)
	soon(t, func() error {
		if got := askPlain(w.port, "/"); got.header.Get("X-Lua") != "a" {
			return fmt.Errorf("%d %v", got.status, got.header)
		}
		return nil
	})

	// What only Envoy knows to be wrong is taken back; the other patches stay.
	patch("script", `causeway.io/unguarded: "true"`, strings.Replace(script, "function envoy_on", "fnction envoy_on", 1))
	w.patchProblem("caller-1", "the proxy refuses the result")
	soon(t, func() error {
		got := askPlain(w.port, "/gone")
		if got.header.Get("X-Lua") != "" {
			return fmt.Errorf("the script is still there")
		}
		return want(got, http.StatusGone)
	})
	w.remove(resources.TypeMeshProxyPatch, "p")
	soon(t, func() error { return want(askPlain(w.port, "/gone"), http.StatusOK) })
}

// askPlain asks an outbound.
func askPlain(port int, path string) answered {
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(fmt.Sprintf("http://127.0.0.1:%d%s",
		port, path))
	if err != nil {
		return answered{}
	}
	defer resp.Body.Close()
	return answered{status: resp.StatusCode, header: resp.Header}
}

// Parts of modifications that TestPatchesNeverAdmit draws. Many of them would open the inbound.
var (
	drawnKinds   = []string{"cluster", "listener", "networkFilter", "httpFilter", "virtualHost"}
	drawnOps     = map[bool][]string{true: {"Remove", "Patch", "AddFirst", "AddLast", "AddBefore", "AddAfter"}, false: {"Add", "Remove", "Patch", "Patch"}}
	drawnOrigins = []string{"inbound", "outbound", "other"}
	drawnFilters = []string{"self_inbound_dp_main_rbac_http", "envoy.filters.http.router", "envoy.filters.http.fault",
		"envoy.filters.network.http_connection_manager", "causeway.client", "self_inbound_dp_main_connection_rate",
		"self_inbound_dp_main", "nowhere"}
	drawnPaths = []string{"/httpFilters/0", "/httpFilters/0/disabled", "/httpFilters/1", "/filterChains/0/transportSocket",
		"/filterChains/0/filters/0", "/filterChains/0/filters/2", "/filterChains/-", "/filterChains/0/filterChainMatch", "/routes/0",
		"/routes/1/route/prefixRewrite", "/routes/1/typedPerFilterConfig/self_inbound_dp_main_rbac_http", "/routes/-",
		"/routes/1/route/cluster", "/typedPerFilterConfig/self_inbound_dp_main_rbac_http", "/normalizePath", "/rds", "/routeConfig",
		"/connectTimeout", "/loadAssignment", "/address/socketAddress/address", "/address/socketAddress/portValue", "/domains/0",
		"/filterChains/0/transportSocket/typedConfig/requireClientCertificate", "/httpFilters", "/filterChains/0/filters",
		"/filterChains/0/transportSocket/typedConfig/commonTlsContext/validationContextSdsSecretConfig", "/defaultFilterChain"}
)

// drawnModification draws one modification, as YAML in flow style. other is the port of a listener that it may add.
func drawnModification(t *rapid.T, other, service int) string {
	one := func(name string, from []string) string { return rapid.SampledFrom(from).Draw(t, name) }
	toApp := fmt.Sprintf(`[{endpoint: {address: {socket_address: {address: %s, port_value: %d}}}}]`,
		one("host", []string{"127.0.0.1", "localhost", `\"::1\"`, "0.0.0.0"}), service)
	tcp := `{name: t, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: a, cluster: ` +
		one("cluster", []string{"self_inbound_dp_main", "app", "causeway_zone"}) + `}}`
	values := map[string][]string{
		"cluster": {"{name: app, load_assignment: {cluster_name: app, endpoints: [{lb_endpoints: " + toApp + "}]}}",
			"connect_timeout: 7s", "{name: self_inbound_dp_main, type: STATIC}"},
		"listener": {fmt.Sprintf("{name: around, address: {socket_address: {address: %s, port_value: %d}}, filter_chains: [{filters: [%s]}]}",
			one("bind", []string{"127.0.0.1", "0.0.0.0"}), other, tcp), "{filter_chains: [{name: more, filters: [" + tcp + "]}]}",
			"{default_filter_chain: {filters: [" + tcp + "]}}"},
		"networkFilter": {tcp, "{name: c, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit, stat_prefix: a, max_connections: 77}}",
			"{name: m, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, http_filters: [], normalize_path: false}}"},
		"httpFilter": {"{name: b, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 7777}}",
			"{name: r, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}",
			"{name: h, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation, mutations: {request_mutations: [{append: {header: {key: ':path', value: /open}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}}]}}}"},
		"virtualHost": {"{name: all, domains: [a.example], routes: [{match: {prefix: /}, route: {cluster: self_inbound_dp_main}}]}",
			"{routes: [{match: {prefix: /}, route: {cluster: self_inbound_dp_main}}]}"},
	}
	kind := one("kind", drawnKinds)
	op := one("op", drawnOps[strings.HasSuffix(kind, "Filter")])
	match := "origin: " + one("origin", drawnOrigins)
	if filter := strings.HasSuffix(kind, "Filter"); filter && (op != "Remove" || rapid.Bool().Draw(t, "named")) {
		match += ", name: " + one("filter", drawnFilters)
	}
	how := fmt.Sprintf("operation: %s, match: {%s}", op, match)
	switch {
	case op == "Add" && kind != "virtualHost":
		how = fmt.Sprintf("operation: Add, value: \"%s\"", one("value", values[kind]))
	case op == "Patch" && rapid.Bool().Draw(t, "json"):
		to := one("path", drawnPaths)
		how += ", jsonPatches: [" + one("patch", []string{
			"{op: remove, path: " + to + "}", "{op: add, path: " + to + ", value: true}", "{op: replace, path: " + to + ", value: false}",
			"{op: move, from: " + to + ", path: " + one("to", drawnPaths) + "}", "{op: copy, from: " + to + ", path: " + one("to", drawnPaths) + "}",
			"{op: add, path: " + to + ", value: {}}", "{op: add, path: " + to + ", value: self_inbound_dp_main}",
			"{op: add, path: " + to + ", value: {'@type': type.googleapis.com/envoy.config.route.v3.FilterConfig, disabled: true}}",
		}) + "]"
	case op != "Remove":
		how += fmt.Sprintf(", value: \"%s\"", one("value", values[kind]))
	}
	return fmt.Sprintf("{%s: {%s}}", kind, how)
}

// TestPatchesNeverAdmit: whatever an ordinary writer patches, a real Envoy admits nobody whom the permission denies,
// and nothing that it denies to somebody: neither at the inbound nor where a patch may listen.
func TestPatchesNeverAdmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, hits := application(t)
	port, other := freePort(t), freePort(t)
	w.httpDataplane("backend", port, service)
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: some, spec: {rules: [{default: {
	  allow: [{spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/alice"}, path: {type: Prefix, value: /open}}]}}]}}`)
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, bob := w.client("alice"), w.client("bob")
	eventually(t, "alice allowed", func() bool { return askAs(t, alice, "GET", port, "/open").status == http.StatusOK })
	applied, round := 0, 0
	try := func(t *rapid.T) {
		round++
		var all []string
		for range rapid.IntRange(1, 3).Draw(t, "modifications") {
			all = append(all, drawnModification(t, other, service))
		}
		w.apply(`{type: MeshProxyPatch, mesh: default, name: p, spec: {default: {appendModifications: [` + strings.Join(all, ", ") + `]}}}`)
		mark := fmt.Sprintf("mark-%d", round)
		w.apply(`{type: MeshFaultInjection, mesh: default, name: mark, spec: {rules: [{matches: [{path: {type: Exact, value: /` + mark + `}}], default: {http: [{abort: {httpStatus: 418, percentage: 100}}]}}]}}`)
		there := func() bool {
			return strings.Contains(e.get("/config_dump?resource=dynamic_route_configs"), mark) ||
				!strings.Contains(e.get("/listeners"), "self_inbound_dp_main") // it may be removed, and has no routes then
		}
		for end := time.Now().Add(5 * time.Second); !there() && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		}
		if !strings.Contains(w.insightText("backend"), "kri_mpp") {
			applied++
		}
		before := hits()
		for _, got := range []answered{
			askAs(w.t, bob, "GET", port, "/open"), askAs(w.t, bob, "GET", port, "/admin"), askAs(w.t, alice, "GET", port, "/admin"),
			askAs(w.t, httpClient(nil), "GET", port, "/open"), askAs(w.t, bob, "GET", other, "/admin"), askPlain(port, "/admin"), askPlain(other, "/admin"),
		} {
			if got.status == http.StatusOK {
				t.Fatalf("admitted by %s", all)
			}
		}
		if hits() != before {
			t.Fatalf("the application was reached by %s", all)
		}
	}
	rapid.Check(t, try)
	for more := 0; applied == 0 && more < 4; more++ { // few are applied, and a short run draws few
		rapid.Check(t, try)
	}
	t.Logf("%d of %d drawn patches were applied", applied, round)
	if applied == 0 {
		t.Error("no drawn patch was applied, so that this shows nothing")
	}
}

// insightText returns the DataplaneInsight as text.
func (w *world) insightText(name string) string {
	insight := w.status.Snapshot().Get(resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: name})
	if insight == nil {
		return ""
	}
	return string(insight.Spec.JSON())
}
