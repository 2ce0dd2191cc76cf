package matching_test

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// gatewayOf reads a MeshGateway with selectors, of the global if zone is empty.
func gatewayOf(t *testing.T, name, zone, selectors string) *resources.Resource {
	t.Helper()
	return document{Name: name, Zone: zone, Spec: fields(t, "{selectors: ["+selectors+"]}")}.resource(t,
		resources.TypeMeshGateway)
}

func fields(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWhichGatewayAProxyServes: most tags, then the zone's own, then the first by name; and never by the tags of an
// owner alone.
func TestWhichGatewayAProxyServes(t *testing.T) {
	t.Parallel()
	edge := "{match: {kuma.io/service: edge}}"
	for _, tt := range []struct {
		name, namespace, gateway string
		gateways                 []*resources.Resource
		want                     string
	}{
		{"by its tag", "", "{type: BUILTIN, tags: {kuma.io/service: edge}}", []*resources.Resource{gatewayOf(t, "a", "zone-1", edge)}, "a"},
		{"in the system namespace", "kuma-system", "{type: BUILTIN, tags: {kuma.io/service: edge}}", []*resources.Resource{gatewayOf(t, "a", "zone-1", edge)}, "a"},
		{"in a namespace, by the owner's tags", "shop", "{type: BUILTIN, tags: {kuma.io/service: edge, k8s.kuma.io/namespace: kuma-system}}",
			[]*resources.Resource{gatewayOf(t, "a", "zone-1", edge), gatewayOf(t, "b", "zone-1", "{match: {kuma.io/service: edge, k8s.kuma.io/namespace: kuma-system}}")}, ""},
		{"in a namespace that the selector names", "shop", "{type: BUILTIN, tags: {kuma.io/service: edge}}", []*resources.Resource{gatewayOf(t, "a", "zone-1", "{match: {k8s.kuma.io/namespace: shop}}")}, "a"},
		{"in any namespace", "shop", "{type: BUILTIN, tags: {kuma.io/service: edge}}", []*resources.Resource{gatewayOf(t, "a", "zone-1", `{match: {k8s.kuma.io/namespace: "*"}}`)}, "a"},
		{"another's tag", "", "{type: BUILTIN, tags: {kuma.io/service: other}}", []*resources.Resource{gatewayOf(t, "a", "zone-1", edge)}, ""},
		{"a delegated one", "", "{tags: {kuma.io/service: edge}}", []*resources.Resource{gatewayOf(t, "a", "zone-1", edge)}, ""},
		{"of another zone", "", "{type: BUILTIN, tags: {kuma.io/service: edge}}", []*resources.Resource{gatewayOf(t, "a", "zone-2", edge)}, ""},
		{"by its zone", "", "{type: BUILTIN, tags: {a: b}}", []*resources.Resource{gatewayOf(t, "a", "", "{match: {kuma.io/zone: zone-2}}"), gatewayOf(t, "b", "", "{match: {kuma.io/zone: zone-1}}")}, "b"},
		{"the zone's over the global's", "", "{type: BUILTIN, tags: {kuma.io/service: edge}}", []*resources.Resource{gatewayOf(t, "a", "", edge), gatewayOf(t, "z", "zone-1", edge)}, "z"},
		{"more tags over the zone's", "", "{type: BUILTIN, tags: {kuma.io/service: edge, v: one}}", []*resources.Resource{gatewayOf(t, "a", "", `{match: {v: "*", kuma.io/service: edge}}`), gatewayOf(t, "z", "zone-1", edge)}, "a"},
		{"the first by name", "", "{type: BUILTIN, tags: {kuma.io/service: edge}}", []*resources.Resource{gatewayOf(t, "b", "zone-1", edge), gatewayOf(t, "a", "zone-1", edge)}, "a"},
		{"no tags to meet", "", "{type: BUILTIN, tags: {kuma.io/service: edge}}", []*resources.Resource{gatewayOf(t, "a", "zone-1", "{match: {}}")}, ""},
	} {
		dp := document{Name: "edge-1", Zone: "zone-1", Namespace: tt.namespace,
			Spec: fields(t, "{networking: {address: 192.0.2.1, gateway: "+tt.gateway+"}}")}.resource(t, resources.TypeDataplane)
		proxy, err := matching.NewProxy(dp)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if g := proxy.WithGateways(tt.gateways, resources.DefaultSystemNamespace).Served(); g != nil {
			got = g.Name
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestWhatSelectsAGateway: policies of kind MeshGateway mean its proxies, routes only as an operator's.
func TestWhatSelectsAGateway(t *testing.T) {
	t.Parallel()
	dp := document{Name: "edge-1", Zone: "zone-1", Spec: fields(t, "{networking: {address: 192.0.2.1, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}}}")}
	proxy, err := matching.NewProxy(dp.resource(t, resources.TypeDataplane))
	if err != nil {
		t.Fatal(err)
	}
	served := proxy.WithGateways([]*resources.Resource{gatewayOf(t, "edge", "zone-1", "{match: {kuma.io/service: edge}}")},
		resources.DefaultSystemNamespace)
	const to = "to: [{targetRef: {kind: Mesh}, default: {}}]"
	for _, tt := range []struct {
		policy document
		want   bool
	}{
		{document{Type: "MeshTimeout", Name: "p", Zone: "zone-1", Spec: fields(t, "{targetRef: {kind: MeshGateway, name: edge}, "+to+"}")}, true},
		{document{Type: "MeshTimeout", Name: "p", Spec: fields(t, "{targetRef: {kind: MeshGateway, name: edge}, "+to+"}")}, true},
		{document{Type: "MeshTimeout", Name: "p", Zone: "zone-1", Spec: fields(t, "{targetRef: {kind: MeshGateway, labels: {kuma.io/zone: zone-1}}, "+to+"}")}, true},
		{document{Type: "MeshTimeout", Name: "p", Zone: "zone-2", Copy: true, Spec: fields(t, "{targetRef: {kind: MeshGateway, name: edge}, "+to+"}")}, false},
		{document{Type: "MeshTimeout", Name: "p", Zone: "zone-1", Spec: fields(t, "{targetRef: {kind: MeshGateway, name: other}, "+to+"}")}, false},
		{document{Type: "MeshTimeout", Name: "p", Zone: "zone-1", Spec: fields(t, "{targetRef: {kind: MeshGateway, name: edge, tags: {a: b}}, "+to+"}")}, false},
		{document{Type: "MeshHTTPRoute", Name: "p", Zone: "zone-1", Spec: fields(t, "{targetRef: {kind: MeshGateway, name: edge, tags: {a: b}}, "+to+"}")}, true},
		{document{Type: "MeshHTTPRoute", Name: "p", Zone: "zone-1", Namespace: "shop", Role: "producer", Spec: fields(t, "{targetRef: {kind: MeshGateway, name: edge}, "+to+"}")}, false},
		{document{Type: "MeshHTTPRoute", Name: "p", Zone: "zone-2", Namespace: "shop", Role: "producer", Copy: true, Spec: fields(t, "{targetRef: {kind: MeshGateway, name: edge}, "+to+"}")}, false},
		{document{Type: "MeshCircuitBreaker", Name: "p", Zone: "zone-1", Namespace: "shop", Role: "producer", Spec: fields(t, "{targetRef: {kind: MeshGateway, name: edge}, to: [{targetRef: {kind: MeshService, name: a}, default: {}}]}")}, true},
		{document{Type: "MeshTimeout", Name: "p", Zone: "zone-1", Spec: fields(t, "{targetRef: {kind: Mesh, proxyTypes: [Gateway]}, "+to+"}")}, true},
		{document{Type: "MeshTimeout", Name: "p", Zone: "zone-1", Spec: fields(t, "{targetRef: {kind: Mesh, proxyTypes: [Sidecar]}, "+to+"}")}, false},
	} {
		p := matching.NewPolicy(tt.policy.resource(t, ""), resources.DefaultSystemNamespace)
		if got := matching.Selects(p, served); got != tt.want {
			t.Errorf("%s %v: %v", tt.policy.Type, tt.policy.Spec["targetRef"], got)
		}
		if kind := p.Target.KindOrMesh(); kind == resources.KindMeshGateway && matching.Selects(p, proxy) {
			t.Errorf("%s %v selects a proxy of no gateway", tt.policy.Type, tt.policy.Spec["targetRef"])
		}
	}
}
