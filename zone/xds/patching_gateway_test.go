package xds

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestPatchesOfGateways: a gateway's listeners and routes are reached by strangers, and held to what inbounds are, though
// nothing in them judges.
func TestPatchesOfGateways(t *testing.T) {
	t.Parallel()
	file := filepath.Join("testdata", "network", "gateway.yaml")
	without, _ := patchedIn(t, file)
	const (
		manager = `networkFilter: {operation: Patch, match: {name: envoy.filters.network.http_connection_manager, origin: gateway}, `
		host    = `virtualHost: {operation: Patch, match: {origin: gateway, name: open.example}, `
		of      = `listener: {operation: Patch, match: {name: "kri_mgw_default_zone-1__edge_8443"}, `
		http    = `type.googleapis.com/envoy.extensions.filters.http.`
	)
	for name, c := range map[string]struct{ modification, because string }{
		"what outsiders say":     {manager + `jsonPatches: [{op: remove, path: /earlyHeaderMutationExtensions}]}`, "early_header_mutation_extensions"},
		"another's address":      {manager + `jsonPatches: [{op: replace, path: /useRemoteAddress, value: false}]}`, "use_remote_address"},
		"trusted hops":           {manager + `jsonPatches: [{op: add, path: /xffNumTrustedHops, value: 9}]}`, "xff_num_trusted_hops"},
		"claims of an identity":  {manager + `jsonPatches: [{op: add, path: /forwardClientCertDetails, value: ALWAYS_FORWARD_ONLY}]}`, "forward_client_cert_details"},
		"paths as they come":     {manager + `jsonPatches: [{op: remove, path: /normalizePath}]}`, "normalize_path"},
		"routes of its own":      {manager + `jsonPatches: [{op: remove, path: /rds}, {op: add, path: /routeConfig, value: {virtualHosts: [{name: a, domains: ["*"]}]}}]}`, "change its filter"},
		"an upgrade":             {manager + `jsonPatches: [{op: add, path: /upgradeConfigs/-, value: {upgradeType: CONNECT}}]}`, "upgrade_configs"},
		"a header":               {`httpFilter: {operation: AddFirst, match: {origin: gateway}, value: "{name: m, typed_config: {'@type': ` + http + `header_mutation.v3.HeaderMutation, mutations: {request_mutations: [{append: {header: {key: x-a, value: b}}}]}}}"}`, "HeaderMutation"},
		"a script":               {`httpFilter: {operation: AddFirst, match: {origin: gateway}, value: "{name: l, typed_config: {'@type': ` + http + `lua.v3.Lua, inline_code: a}}"}`, "Lua"},
		"no router":              {`httpFilter: {operation: Remove, match: {origin: gateway, name: envoy.filters.http.router}}`, "would lose its filter"},
		"another hostname":       {host + `jsonPatches: [{op: add, path: /domains/-, value: "*"}]}`, "domains"},
		"another host's routes":  {host + `jsonPatches: [{op: add, path: /routes/0, value: {match: {prefix: /}, route: {cluster: causeway_lost}}}]}`, "would have other routes"},
		"a route to elsewhere":   {host + `jsonPatches: [{op: replace, path: /routes/0/route/cluster, value: kri_msvc_default_zone-1__backend_raw}]}`, "would change the"},
		"a path of a route":      {host + `jsonPatches: [{op: add, path: /routes/0/route/prefixRewrite, value: /admin}]}`, "prefix_rewrite"},
		"a host of its own":      {`virtualHost: {operation: Add, match: {origin: gateway}, value: "{name: all, domains: ['*'], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}"}`, "would have other virtual hosts"},
		"a host less":            {`virtualHost: {operation: Remove, match: {origin: gateway, name: open.example}}`, "would have other virtual hosts"},
		"another server name":    {of + `jsonPatches: [{op: remove, path: /filterChains/0/filterChainMatch}]}`, "filter_chain_match"},
		"another chain":          {of + `value: "{filter_chains: [{name: more, filters: []}]}"}`, "would have other filter chains"},
		"where bytes go":         {`networkFilter: {operation: Patch, match: {origin: gateway, name: envoy.filters.network.tcp_proxy}, jsonPatches: [{op: replace, path: /cluster, value: kri_msvc_default_zone-1__backend_http}, {op: remove, path: /weightedClusters}]}`, "change its filter"},
		"another address":        {of + `value: "{address: {socket_address: {address: 0.0.0.0, port_value: 1}}}"}`, "would change its address"},
		"a listener for anybody": {`listener: {operation: Add, value: "{name: more, address: {socket_address: {address: 192.0.2.1, port_value: 1}}, filter_chains: [{filters: [{name: t, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: a, cluster: a}}]}]}"}`, "listens elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patch := &patchCase{Modifications: json.RawMessage(mustJSON(t, "[{"+c.modification+"}]"))}
			sent, problems := patchedIn(t, file, patchOf(patch, nil))
			if sent != without || !strings.Contains(problems, c.because) || !strings.Contains(problems, "unguard") {
				t.Errorf("applied, or refused for another reason: %q, want %q", problems, c.because)
			}
			sent, problems = patchedIn(t, file, patchOf(patch, map[string]string{resources.LabelUnguarded: "true"}))
			if problems != "" || sent == without {
				t.Errorf("unguarded it is not applied: %q", problems)
			}
		})
	}
	for name, modification := range map[string]string{
		"a limit of bodies":   `httpFilter: {operation: AddFirst, match: {origin: gateway}, value: "{name: b, typed_config: {'@type': ` + http + `buffer.v3.Buffer, max_request_bytes: 7777}}"}`,
		"a limit of requests": `httpFilter: {operation: AddFirst, match: {origin: gateway}, value: "{name: r, typed_config: {'@type': ` + http + `local_ratelimit.v3.LocalRateLimit, stat_prefix: a}}"}`,
		"compression":         `httpFilter: {operation: AddFirst, match: {origin: gateway}, value: "{name: c, typed_config: {'@type': ` + http + `cors.v3.Cors}}"}`,
		"a timeout":           host + `jsonPatches: [{op: add, path: /routes/0/route/timeout, value: 77s}]}`,
		"an answer's header":  host + `value: "{response_headers_to_add: [{header: {key: x-a, value: b}}]}"}`,
		"a limit of memory":   of + `value: "{per_connection_buffer_limit_bytes: 7777}"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patch := &patchCase{Modifications: json.RawMessage(mustJSON(t, "[{"+modification+"}]"))}
			if sent, problems := patchedIn(t, file, patchOf(patch, nil)); problems != "" || sent == without {
				t.Errorf("not applied: %q", problems)
			}
		})
	}
}
