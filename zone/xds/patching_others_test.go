package xds

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestPatchThatTheProxyRefuses: the policy is left out, and the proxy has the rest.
func TestPatchThatTheProxyRefuses(t *testing.T) {
	t.Parallel()
	s := storeOf(t, filepath.Join("testdata", "enforced", "mesh.yaml"))
	x := testProxies(s)
	session := newSession(x)
	defer session.end()
	if err := session.identify(testNode("caller")); err != nil {
		t.Fatal(err)
	}
	before := session.proxy.state.Load().served(kindListener)
	c := patchCases(t, "accepted.yaml")[5]
	if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: patchOf(&c, nil)}}}); err != nil {
		t.Fatal(err)
	}
	x.catchUp()
	if session.proxy.state.Load().served(kindListener).equal(before) {
		t.Fatal("the patch is not applied")
	}
	x.configRefused(session.proxy, kindListener, "Error adding/updating listener(s) another: no")
	if !session.proxy.state.Load().served(kindListener).equal(before) {
		t.Error("a refusal that names no resource leaves the patch")
	}
	if said := session.proxy.record.problems[problemPolicies]; !strings.Contains(said, "the proxy refuses the result") {
		t.Errorf("problems %q", said)
	}
}

// TestPatchThatPanics: a panic in a patch costs the patches of that proxy only, and says so.
func TestPatchThatPanics(t *testing.T) {
	t.Parallel()
	x := testProxies(storeOf(t, filepath.Join("testdata", "enforced", "mesh.yaml")))
	x.cfg.Panics = panics.New(slog.New(slog.DiscardHandler))
	session := newSession(x)
	defer session.end()
	if err := session.identify(testNode("caller")); err != nil {
		t.Fatal(err)
	}
	before := session.proxy.state.Load()
	x.mu.Lock()
	next := *before
	session.proxy.target.observed.patches = []*patch{{kri: "p", id: "p"}} // without a conf
	x.publishLocked(session.proxy, &next)
	x.mu.Unlock()
	after := session.proxy.state.Load()
	if !after.served(kindListener).equal(before.served(kindListener)) {
		t.Error("the proxy has lost its listeners")
	}
	if said := strings.Join(after.patched.problems, ""); !strings.Contains(said, "no MeshProxyPatch has an effect") {
		t.Errorf("problems %q", said)
	}
}

// TestPatchesOfWhatOthersMay: what an unguarded patch brought is not for an ordinary one to change: not the text of a
// script, where a request is sent on, or where a log goes.
func TestPatchesOfWhatOthersMay(t *testing.T) {
	t.Parallel()
	manager := func(jsonPatches string) string {
		return `[{networkFilter: {operation: Patch, match: {name: envoy.filters.network.http_connection_manager, origin: outbound}, jsonPatches: [` + jsonPatches + `]}}]`
	}
	for name, c := range map[string]struct{ brings, changes, has string }{
		"a script, by a JSON patch": {
			`[{httpFilter: {operation: AddFirst, match: {origin: outbound}, value: "{name: lua, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: 'function envoy_on_response(h) end'}}}"}}]`,
			manager(`{op: replace, path: /httpFilters/0/typedConfig/defaultSourceCode/inlineString, value: "evil()"}`), "evil()"},
		"a script, by a value": {
			`[{httpFilter: {operation: AddFirst, match: {origin: outbound}, value: "{name: lua, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: 'function envoy_on_response(h) end'}}}"}}]`,
			`[{httpFilter: {operation: Patch, match: {name: lua}, value: "{name: lua, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: evil()}}}"}}]`, "evil()"},
		"a script in a route": {
			`[{virtualHost: {operation: Patch, match: {origin: outbound}, value: "{typed_per_filter_config: {lua: {'@type': type.googleapis.com/envoy.extensions.filters.http.lua.v3.LuaPerRoute, name: good}}}"}}]`,
			`[{virtualHost: {operation: Patch, match: {origin: outbound}, jsonPatches: [{op: replace, path: /typedPerFilterConfig/lua/name, value: evil}]}}]`, "evil"},
		"which header names the cluster": {
			`[{virtualHost: {operation: Patch, match: {origin: outbound}, jsonPatches: [{op: add, path: /routes/0, value: {match: {prefix: /x}, route: {clusterHeader: x-good}}}]}}]`,
			`[{virtualHost: {operation: Patch, match: {origin: outbound}, jsonPatches: [{op: replace, path: /routes/0/route/clusterHeader, value: x-evil}]}}]`, "x-evil"},
		"where requests go": {
			`[{virtualHost: {operation: Patch, match: {origin: outbound}, jsonPatches: [{op: add, path: /routes/0, value: {match: {prefix: /good}, route: {cluster: self_inbound_dp_main}}}]}}]`,
			`[{virtualHost: {operation: Patch, match: {origin: outbound}, jsonPatches: [{op: replace, path: /routes/0/match/prefix, value: /evil}]}}]`, "/evil"},
		"what a call says": {
			`[{httpFilter: {operation: AddFirst, match: {origin: outbound}, value: "{name: authz, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz, grpc_service: {envoy_grpc: {cluster_name: authz}}}}"}}]`,
			manager(`{op: add, path: /httpFilters/0/typedConfig/failureModeAllow, value: true}`), "failure_mode_allow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			named := func(name, modifications string, labels map[string]string) *resources.Resource {
				c := patchOf(&patchCase{Modifications: json.RawMessage(mustJSON(t, modifications))}, labels).Clone()
				c.Name = name
				return testHome.Labelled(c)
			}
			unguarded := map[string]string{resources.LabelUnguarded: "true"}
			brings := named("b", c.brings, unguarded)
			only, problems := patchedBy(t, brings)
			if problems != "" {
				t.Fatal(problems)
			}
			sent, problems := patchedBy(t, brings, named("a", c.changes, nil))
			if sent != only || !strings.Contains(problems, "unguard") {
				t.Errorf("an ordinary patch changes it: problems %q", problems)
			}
			sent, problems = patchedBy(t, brings, named("a", c.changes, unguarded))
			if problems != "" || !strings.Contains(sent, c.has) {
				t.Errorf("an unguarded one does not: %q", problems)
			}
		})
	}
}

// TestPatchesAreReadOnce: however many proxies a policy selects, its values are read once for each version of it.
func TestPatchesAreReadOnce(t *testing.T) {
	t.Parallel()
	s := storeOf(t, filepath.Join("testdata", "enforced", "mesh.yaml"))
	x := testProxies(s)
	var sessions []*session
	for _, name := range []string{"caller", "backend-1"} {
		session := newSession(x)
		defer session.end()
		if err := session.identify(testNode(name)); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, session)
	}
	write := func(seconds string) (out []*patch) {
		t.Helper()
		c := patchCase{Modifications: json.RawMessage(mustJSON(t, `[{cluster: {operation: Patch, value: "connect_timeout: `+seconds+`"}}]`))}
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: patchOf(&c, nil)}}}); err != nil {
			t.Fatal(err)
		}
		x.catchUp()
		for _, session := range sessions {
			if of := session.proxy.target.observed.patches; len(of) != 1 {
				t.Fatalf("%d patches", len(of))
			} else {
				out = append(out, of[0])
			}
		}
		return out
	}
	first := write("7s")
	if first[0] != first[1] {
		t.Error("each proxy reads the policy")
	}
	second := write("8s")
	if second[0] != second[1] || second[0] == first[0] || second[0].id == first[0].id {
		t.Error("a new version is not read, or by each proxy")
	}
}

// TestPatchesOfLogs: an ordinary patch may change a listener in which another policy has the proxy write a log, but not
// where the log goes.
func TestPatchesOfLogs(t *testing.T) {
	t.Parallel()
	log := testResource(resources.Key{Type: resources.TypeMeshAccessLog, Mesh: "default", Name: "log"}, nil, map[string]any{
		"to": []any{map[string]any{"targetRef": map[string]any{"kind": "Mesh"}, "default": map[string]any{"backends": []any{
			map[string]any{"type": "File", "file": map[string]any{"path": "/var/log/mesh.log"}}}}}}})
	manager := func(jsonPatch string) *resources.Resource {
		return patchOf(&patchCase{Modifications: json.RawMessage(mustJSON(t, `[{networkFilter: {operation: Patch, `+
			`match: {name: envoy.filters.network.http_connection_manager, origin: outbound}, jsonPatches: [`+jsonPatch+`]}}]`))}, nil)
	}
	sent, problems := patchedBy(t, log, manager(`{op: replace, path: /accessLog/0/typedConfig/path, value: /etc/cron.d/evil}`))
	if strings.Contains(sent, "/etc/cron.d/evil") || !strings.Contains(problems, "FileAccessLog") || !strings.Contains(problems, "unguard") {
		t.Errorf("the log goes elsewhere: problems %q", problems)
	}
	sent, problems = patchedBy(t, log, manager(`{op: add, path: /serverName, value: mine}`))
	if !strings.Contains(sent, "/var/log/mesh.log") || !strings.Contains(sent, "server_name: mine") || problems != "" {
		t.Errorf("beside the log, nothing may change: problems %q", problems)
	}
}

// TestPatchesOfOperatorsFilters: an owner's patch does not configure, for a route, a filter by which an operator's patch
// closes something. It configures its own.
func TestPatchesOfOperatorsFilters(t *testing.T) {
	t.Parallel()
	named := func(name, namespace, modifications string) *resources.Resource {
		return patchNamed(t, name, namespace, nil, modifications)
	}
	limit, off, file := bufferFilter, bufferOff, ownedMesh(t)
	operators := named("o", "", "["+limit("of-operator")+"]")
	only, problems := patchedIn(t, file, operators)
	if problems != "" || !strings.Contains(only, "of-operator") {
		t.Fatal(problems)
	}
	sent, problems := patchedIn(t, file, operators, named("a", "shop", "["+off("of-operator")+"]"))
	if sent != only || !strings.Contains(problems, "of-operator") {
		t.Errorf("an owner turns off what an operator closes: problems %q", problems)
	}
	sent, problems = patchedIn(t, file, operators, named("a", "shop", "["+limit("own")+", "+off("own")+"]"))
	if problems != "" || !strings.Contains(sent, "BufferPerRoute") {
		t.Errorf("an owner does not configure a filter of her own: problems %q", problems)
	}
	sent, problems = patchedIn(t, file, operators, named("p", "", "["+off("of-operator")+"]"))
	if problems != "" || !strings.Contains(sent, "BufferPerRoute") {
		t.Errorf("an operator does not change what operators wrote: problems %q", problems)
	}
}

// TestPatchesOfOperatorsFiltersThatComeLater: an owner's patch for all of her proxies applies before an operator's for some.
// It does not configure what that will add either, also if it adds a filter of that name itself.
func TestPatchesOfOperatorsFiltersThatComeLater(t *testing.T) {
	t.Parallel()
	file := ownedMesh(t)
	some := map[string]any{"kind": "Dataplane", "labels": map[string]any{"node": "n1"}}
	operators := patchNamed(t, "o", "", some, "["+bufferFilter("of-operator")+"]")
	only, problems := patchedIn(t, file, operators)
	if problems != "" || !strings.Contains(only, "of-operator") {
		t.Fatal(problems)
	}
	for name, modifications := range map[string]string{
		"its route":             bufferOff("of-operator"),
		"its route and name":    bufferFilter("of-operator") + ", " + bufferOff("of-operator"),
		"its route, and others": bufferFilter("own") + ", " + bufferOff("own") + ", " + bufferOff("of-operator"),
	} {
		sent, problems := patchedIn(t, file, operators, patchNamed(t, "a", "shop", nil, "["+modifications+"]"))
		if sent != only || strings.Count(problems, "the filter of-operator") != 1 {
			t.Errorf("an owner configures %s: problems %q", name, problems)
		}
	}
	own := patchNamed(t, "a", "shop", nil, "["+bufferFilter("own")+", "+bufferOff("own")+"]")
	sent, problems := patchedIn(t, file, operators, own)
	if problems != "" || !strings.Contains(sent, "of-operator") || !strings.Contains(sent, "BufferPerRoute") {
		t.Errorf("an owner does not configure a filter of her own: problems %q", problems)
	}
}

// patchNamed returns a MeshProxyPatch of the zone for a target, nil for none, in a namespace.
func patchNamed(t *testing.T, name, namespace string, target map[string]any, modifications string) *resources.Resource {
	t.Helper()
	spec := map[string]any{"default": map[string]any{"appendModifications": json.RawMessage(mustJSON(t, modifications))}}
	if target != nil {
		spec["targetRef"] = target
	}
	return testResource(resources.Key{Type: resources.TypeMeshProxyPatch, Mesh: "default", Namespace: namespace, Name: name}, nil, spec)
}

// bufferFilter adds an HTTP filter to inbounds, and bufferOff turns it off for their routes.
func bufferFilter(name string) string {
	return `{httpFilter: {operation: AddBefore, match: {name: envoy.filters.http.router, origin: inbound}, value: "{name: ` + name +
		`, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 7}}"}}`
}

func bufferOff(name string) string {
	return `{virtualHost: {operation: Patch, match: {origin: inbound}, value: "{typed_per_filter_config: {` + name +
		`: {'@type': type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, disabled: true}}}"}}`
}

// ownedMesh returns a file with the zone of patchedBy in which the caller is in the namespace shop.
func ownedMesh(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "enforced", "mesh.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mesh.yaml")
	of := strings.Replace(string(raw), "name: caller\nlabels: {node: n1}", "name: caller\nlabels: {node: n1, k8s.kuma.io/namespace: shop}", 1)
	if err := os.WriteFile(file, []byte(of), 0o600); err != nil || of == string(raw) {
		t.Fatal("the proxy has no owner: ", err)
	}
	return file
}
