package xds

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/proxypatch"
	"github.com/causeway-mesh/causeway/resources/store"
)

// patchCase is a row of testdata/patches.
type patchCase struct {
	Name, Because, Has string
	Modifications      json.RawMessage
}

func patchCases(t *testing.T, file string) (out []patchCase) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "patches", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// patchOf returns a MeshProxyPatch, written in the zone without any check.
func patchOf(c *patchCase, labels map[string]string) *resources.Resource {
	return testResource(resources.Key{Type: resources.TypeMeshProxyPatch, Mesh: "default", Name: "p"}, labels,
		map[string]any{"default": map[string]any{"appendModifications": c.Modifications}})
}

// patchedBy returns what the proxy of caller is sent with a policy, and its problems with policies.
func patchedBy(t *testing.T, policies ...*resources.Resource) (sent, problems string) {
	t.Helper()
	return patchedIn(t, filepath.Join("testdata", "enforced", "mesh.yaml"), policies...)
}

// patchedIn is patchedBy with another zone's store.
func patchedIn(t *testing.T, file string, policies ...*resources.Resource) (sent, problems string) {
	t.Helper()
	s := storeOf(t, file)
	for _, p := range policies {
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: p}}}); err != nil {
			t.Fatal(err)
		}
	}
	x := testProxies(s)
	x.cfg.Own = func(_ string, port uint32) bool { return port == 5681 }
	session := newSession(x)
	defer session.end()
	if err := session.identify(testNode("caller")); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for k := range kinds {
		for _, r := range session.proxy.state.Load().served(k) {
			out.Write(asYAML(t, r))
		}
	}
	return out.String(), session.proxy.record.problems[problemPolicies]
}

// TestPatchesThatOpen: what a patch must not do is refused by its result, however it is written, and costs that patch
// only. The same patch of a writer who may is applied.
func TestPatchesThatOpen(t *testing.T) {
	t.Parallel()
	without, _ := patchedBy(t)
	for _, c := range patchCases(t, "refused.yaml") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			sent, problems := patchedBy(t, patchOf(&c, nil))
			if sent != without {
				t.Error("the patch changes what the proxy is sent")
			}
			if !strings.Contains(problems, c.Because) || !strings.Contains(problems, "kri_mpp_default_zone-1__p_") {
				t.Errorf("problems %q, want %q", problems, c.Because)
			}
			if !strings.Contains(problems, "unguard") {
				t.Errorf("problems %q do not say who may", problems)
			}
			sent, problems = patchedBy(t, patchOf(&c, map[string]string{resources.LabelUnguarded: "true"}))
			if problems != "" || sent == without {
				t.Errorf("unguarded it is not applied: %q", problems)
			}
		})
	}
}

// TestPatchesThatAreAccepted: an ordinary patch is applied, and a copy of the global's is, too.
func TestPatchesThatAreAccepted(t *testing.T) {
	t.Parallel()
	without, _ := patchedBy(t)
	for _, c := range patchCases(t, "accepted.yaml") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var conf proxypatch.Conf
			if err := json.Unmarshal(c.Modifications, &conf.AppendModifications); err != nil {
				t.Fatal(err)
			}
			if _, wrong := conf.Read(true); len(wrong) > 0 {
				t.Fatal(wrong[0].Error())
			}
			sent, problems := patchedBy(t, patchOf(&c, nil))
			if problems != "" || sent == without {
				t.Fatalf("not applied: %q", problems)
			}
			if c.Has != "" && (!strings.Contains(sent, c.Has) || strings.Contains(without, c.Has)) {
				t.Errorf("with the patch there is no %q, or without it too", c.Has)
			}
		})
	}
}

// TestPatchesOfOthersAreGuarded: the label counts in the zone where the policy was written only.
func TestPatchesOfOthersAreGuarded(t *testing.T) {
	t.Parallel()
	c := patchCases(t, "refused.yaml")[0]
	without, _ := patchedBy(t)
	for name, labels := range map[string]map[string]string{
		"of the global":    {resources.LabelOrigin: resources.OriginGlobal, resources.LabelZone: ""},
		"of another zone":  {resources.LabelZone: "zone-2"},
		"as a global says": {resources.LabelOrigin: resources.OriginGlobal},
	} {
		policy := patchOf(&c, map[string]string{resources.LabelUnguarded: "true"})
		maps.Copy(policy.Labels, labels)
		if sent, problems := patchedBy(t, policy); sent != without {
			t.Errorf("%s: applied, problems %q", name, problems)
		}
	}
}

// TestPatchesOneAfterAnother: policies are applied in the order of merging, each to what the ones before made, and one
// cannot prepare what another does.
func TestPatchesOneAfterAnother(t *testing.T) {
	t.Parallel()
	named := func(name, modifications string) *resources.Resource {
		r := patchOf(&patchCase{Modifications: json.RawMessage(mustJSON(t, modifications))}, nil)
		c := r.Clone()
		c.Name = name
		return testHome.Labelled(c)
	}
	sent, problems := patchedBy(t,
		named("b", `[{cluster: {operation: Patch, match: {origin: inbound}, value: "connect_timeout: 7s"}}]`),
		named("a", `[{cluster: {operation: Patch, match: {origin: inbound}, value: "connect_timeout: 9s"}}]`))
	if problems != "" || !strings.Contains(sent, "connect_timeout: 9s") || strings.Contains(sent, "connect_timeout: 7s") {
		t.Errorf("the one of the first name does not win: %q", problems)
	}
	sent, problems = patchedBy(t,
		named("b", `[{listener: {operation: Remove, match: {name: self_inbound_dp_main}}}, {cluster: {operation: Remove, match: {name: self_inbound_dp_main}}}]`),
		named("a", `[{listener: {operation: Add, value: "{name: to-a, address: {socket_address: {address: 127.0.0.1, port_value: 80}}, filter_chains: [{filters: [{name: t, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: a, cluster: c}}]}]}"}}]`))
	if !strings.Contains(problems, "listens on the port of self_inbound_dp_main") || strings.Contains(sent, "cluster: c\n") {
		t.Errorf("problems %q", problems)
	}
	sent, problems = patchedBy(t,
		named("b", `[{cluster: {operation: Add, value: "{name: named, type: STRICT_DNS, load_assignment: {cluster_name: named, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: a.example, port_value: 80}}}}]}]}}"}}]`),
		named("a", `[{cluster: {operation: Patch, match: {name: named}, value: "health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]"}}]`))
	if !strings.Contains(problems, "has health checks of") || strings.Contains(sent, "tcp_health_check") {
		t.Errorf("a policy checks the name that another added: %q", problems)
	}
	sent, problems = patchedBy(t,
		named("b", `[{cluster: {operation: Patch, value: "no_such_field: 7s"}}]`),
		named("c", `[{cluster: {operation: Patch, jsonPatches: [{op: replace, path: /connectTimeout, value: soon}]}}]`),
		named("d", `[{cluster: {operation: Patch, jsonPatches: [{op: replace, path: /connectTimeout, value: 0s}]}}]`),
		named("e", `[{cluster: {operation: Patch, match: {name: none}, value: "connect_timeout: 7s"}}]`),
		named("a", `[{cluster: {operation: Patch, match: {origin: inbound}, value: "connect_timeout: 9s"}}]`))
	for _, part := range []string{"appendModifications[0].cluster.value: is not Envoy's", "appendModifications[0].cluster: ",
		"that Envoy takes", "none of its modifications"} {
		if !strings.Contains(problems, part) {
			t.Errorf("problems %q do not say %q", problems, part)
		}
	}
	if !strings.Contains(sent, "connect_timeout: 9s") {
		t.Error("bad patches cost a good one")
	}
}

func mustJSON(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
