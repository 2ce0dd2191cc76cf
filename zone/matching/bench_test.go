package matching_test

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

const benchPolicies = 1000

// benchSet returns the policies of a mesh, and a proxy to which about ten of them apply.
func benchSet(b *testing.B) ([]*matching.Policy, *matching.Proxy) {
	b.Helper()
	conf := map[string]any{"allow": []any{map[string]any{"spiffeId": map[string]any{"type": "Exact",
		"value": "spiffe://a.mesh/ns/x/sa/one"}}}}
	var policies []*matching.Policy
	for i := range benchPolicies {
		target := map[string]any{"kind": "Dataplane", "labels": map[string]any{"app": fmt.Sprintf("app-%d", i%200),
			"kuma.io/zone": "zone-1"}}
		switch i % 100 {
		case 0:
			target = map[string]any{"kind": "Mesh"}
		case 1, 2, 3:
			target = map[string]any{"kind": "Dataplane", "name": fmt.Sprintf("dp-%d", i)}
		}
		d := document{Name: fmt.Sprintf("p-%d", i), Zone: "zone-1",
			Spec: map[string]any{"targetRef": target, "default": conf}}
		policies = append(policies, matching.NewPolicy(d.resource(b, resources.TypeMeshTrafficPermission),
			resources.DefaultSystemNamespace))
	}
	dp := document{Name: "dp-1", Zone: "zone-1", Labels: map[string]string{"app": "app-50"}, Spec: map[string]any{
		"networking": map[string]any{"inbound": []any{map[string]any{"port": 80}, map[string]any{"port": 81}}},
	}}
	proxy, err := matching.NewProxy(dp.resource(b, resources.TypeDataplane))
	if err != nil {
		b.Fatal(err)
	}
	return policies, proxy
}

// BenchmarkInbound computes the rules of both inbounds of one proxy under 1,000 policies.
func BenchmarkInbound(b *testing.B) {
	policies, proxy := benchSet(b)
	index := matching.NewIndex(policies)
	for name, rules := range map[string]func(*matching.InboundPort) matching.Rules{
		"all":   func(in *matching.InboundPort) matching.Rules { return matching.Inbound(proxy, in, policies) },
		"index": func(in *matching.InboundPort) matching.Rules { return index.Inbound(proxy, in) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for i := range proxy.Inbounds {
					if len(rules(&proxy.Inbounds[i]).Items) == 0 {
						b.Fatal("no rules")
					}
				}
			}
		})
	}
}

// BenchmarkNewIndex measures the cost of one change of a policy, without the proxies that it affects.
func BenchmarkNewIndex(b *testing.B) {
	policies, _ := benchSet(b)
	b.ReportAllocs()
	for b.Loop() {
		matching.NewIndex(policies)
	}
}
