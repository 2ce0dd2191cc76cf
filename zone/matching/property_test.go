package matching_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// The pools from which policies and Dataplanes are drawn. They are small, so that policies often match.
var (
	zones      = []string{"zone-1", "zone-2"}
	namespaces = []string{"", "a", "b", "kuma-system"}
	names      = []string{"one", "two", "three"}
	apps       = []string{"x", "y"}
)

// drawTarget draws any top-level targetRef, including ones that validation would reject.
func drawTarget(t *rapid.T) map[string]any {
	pick := func(what string, values ...string) string { return rapid.SampledFrom(values).Draw(t, what) }
	labels := func() map[string]any {
		return map[string]any{pick("label", "app", "kuma.io/zone", "k8s.kuma.io/namespace",
			"kuma.io/display-name"): pick("value", "x", "y", "zone-1", "zone-2", "a", "b", "one")}
	}
	ref := map[string]any{}
	switch pick("kind", "none", "Mesh", "by labels", "by name", "MeshSubset", "MeshService", "MeshServiceSubset",
		"MeshGateway", "MeshGateway by labels") {
	case "none":
		return ref
	case "Mesh":
		ref["kind"] = "Mesh"
	case "by labels":
		ref["kind"], ref["labels"] = "Dataplane", labels()
	case "by name":
		ref["kind"], ref["name"], ref["namespace"] = "Dataplane", pick("name", names...), pick("namespace", namespaces...)
	case "MeshSubset":
		ref["kind"], ref["tags"] = "MeshSubset", labels()
	case "MeshService":
		ref["kind"], ref["name"] = "MeshService", pick("service", apps...)
	case "MeshServiceSubset":
		ref["kind"], ref["name"], ref["tags"] = "MeshServiceSubset", pick("service", apps...), labels()
	case "MeshGateway":
		ref["kind"], ref["name"] = "MeshGateway", pick("name", append(names, hashing.Name("default", "one", "zone-1"))...)
	case "MeshGateway by labels":
		ref["kind"], ref["labels"] = "MeshGateway", labels()
	}
	if rapid.IntRange(0, 3).Draw(t, "has section") == 0 {
		ref["sectionName"] = pick("section", "main", "81")
	}
	return ref
}

func drawPolicy(t *rapid.T) document {
	d := document{
		Name:      rapid.SampledFrom(names).Draw(t, "name"),
		Namespace: rapid.SampledFrom(namespaces).Draw(t, "namespace"),
		Copy:      rapid.Bool().Draw(t, "copy"),
		Spec:      map[string]any{"targetRef": drawTarget(t), "default": map[string]any{}},
	}
	if d.Zone = rapid.SampledFrom(append(zones, "")).Draw(t, "zone"); d.Zone == "" {
		d.Namespace = ""
	}
	if rapid.IntRange(0, 2).Draw(t, "has to") == 0 {
		ns := rapid.SampledFrom(namespaces).Draw(t, "to namespace")
		d.Spec["to"] = []any{map[string]any{"targetRef": map[string]any{"kind": "MeshService", "name": "x", "namespace": ns}}}
	}
	return d
}

func drawDataplane(t *rapid.T) document {
	app := rapid.SampledFrom(apps).Draw(t, "app")
	tags := map[string]any{"kuma.io/service": app, "kuma.io/zone": "zone-1", "k8s.kuma.io/namespace": "a"}
	networking := map[string]any{"inbound": []any{
		map[string]any{"name": "main", "port": 80, "tags": tags}, map[string]any{"port": 81}}}
	if rapid.IntRange(0, 2).Draw(t, "is a gateway") == 0 {
		networking = map[string]any{"gateway": map[string]any{"tags": map[string]any{"kuma.io/service": app,
			"edge": rapid.SampledFrom(apps).Draw(t, "edge")}, "type": rapid.SampledFrom([]string{"BUILTIN", "BUILTIN", "DELEGATED"}).Draw(t, "gateway")}}
	}
	return document{
		Name:      rapid.SampledFrom(names).Draw(t, "name"),
		Namespace: rapid.SampledFrom(namespaces[:3]).Draw(t, "namespace"),
		Zone:      rapid.SampledFrom(zones).Draw(t, "zone"),
		Labels:    map[string]string{"app": app},
		Spec:      map[string]any{"networking": networking},
	}
}

// drawProxy draws a Dataplane, and the MeshGateways of its mesh.
func drawProxy(t *testing.T, rt *rapid.T) (document, *matching.Proxy) {
	dp := drawDataplane(rt)
	proxy, err := matching.NewProxy(dp.resource(t, resources.TypeDataplane))
	if err != nil {
		rt.Fatal(err)
	}
	return dp, proxy.WithGateways(drawGateways(t, rt), resources.DefaultSystemNamespace)
}

// drawGateways draws MeshGateways, some of the same name.
func drawGateways(t *testing.T, rt *rapid.T) (out []*resources.Resource) {
	for range rapid.IntRange(0, 5).Draw(rt, "gateways") {
		var selectors []any
		for range rapid.IntRange(0, 2).Draw(rt, "selectors") {
			selectors = append(selectors, map[string]any{"match": rapid.MapOfN(
				rapid.SampledFrom([]string{"kuma.io/service", "edge", "kuma.io/zone", "k8s.kuma.io/namespace"}),
				rapid.SampledFrom([]string{"x", "y", "*", "zone-1", "a", "kuma-system"}), 0, 3).Draw(rt, "match")})
		}
		d := document{Name: rapid.SampledFrom(names).Draw(rt, "name"), Zone: rapid.SampledFrom(append(zones, "")).Draw(rt, "zone"),
			Spec: map[string]any{"selectors": selectors}}
		out = append(out, d.resource(t, resources.TypeMeshGateway))
	}
	return out
}

func readPolicies(t *testing.T, documents []document) []*matching.Policy {
	var out []*matching.Policy
	for _, d := range documents {
		out = append(out, matching.NewPolicy(d.resource(t, resources.TypeMeshTrafficPermission),
			resources.DefaultSystemNamespace))
	}
	return out
}

// TestContainment: whatever its targetRef is, a policy changes no inbound outside the reach of its home.
func TestContainment(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := drawPolicy(rt)
		policy := readPolicies(t, []document{d})[0]
		dp, proxy := drawProxy(t, rt)
		for i := range proxy.Inbounds {
			if !matching.SelectsInbound(policy, proxy, &proxy.Inbounds[i]) {
				continue
			}
			if !matching.Selects(policy, proxy) {
				rt.Fatalf("%+v selects an inbound of %+v but not the proxy", d, dp)
			}
			if d.Zone != "" && d.Zone != dp.Zone {
				rt.Fatalf("%+v reaches out of its zone to %+v", d, dp)
			}
			if d.Namespace != "" && d.Namespace != resources.DefaultSystemNamespace && d.Namespace != dp.Namespace {
				rt.Fatalf("%+v reaches out of its namespace to %+v", d, dp)
			}
		}
	})
}

// TestIndexAgreesWithSelects: the index's candidates yield the same rules as all policies.
func TestIndexAgreesWithSelects(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policies := distinct(readPolicies(t, rapid.SliceOfN(rapid.Custom(drawPolicy), 0, 12).Draw(rt, "policies")))
		_, proxy := drawProxy(t, rt)
		index := matching.NewIndex(policies)
		for i := range proxy.Inbounds {
			in := &proxy.Inbounds[i]
			all, indexed := matching.Inbound(proxy, in, policies), index.Inbound(proxy, in)
			if fmt.Sprint(all) != fmt.Sprint(indexed) {
				rt.Fatalf("all %v, through the index %v", all, indexed)
			}
		}
	})
}

// distinct keeps the first policy of each key, as a store has it.
func distinct(policies []*matching.Policy) []*matching.Policy {
	seen := map[resources.Key]bool{}
	return slices.DeleteFunc(policies, func(p *matching.Policy) bool {
		again := seen[p.Resource.Key]
		seen[p.Resource.Key] = true
		return again
	})
}

// TestSetSelectsWhatPoliciesSelect: a set that has been changed in any way yields each policy that selects a proxy,
// once, and says by which of its conditions the proxy is found.
func TestSetSelectsWhatPoliciesSelect(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		drawn := readPolicies(t, rapid.SliceOfN(rapid.Custom(drawPolicy), 1, 12).Draw(rt, "policies"))
		_, proxy := drawProxy(t, rt)
		set, kept := matching.NewSet(), map[resources.Key]*matching.Policy{}
		for _, i := range rapid.SliceOfN(rapid.IntRange(-len(drawn), len(drawn)-1), 0, 40).Draw(rt, "changes") {
			if i < 0 {
				key := drawn[-i-1].Resource.Key
				set.Remove(key)
				delete(kept, key)
				continue
			}
			set.Add(drawn[i])
			kept[drawn[i].Resource.Key] = drawn[i]
		}
		candidates := set.Candidates(proxy)
		conditions := slices.Collect(matching.Conditions(proxy))
		for key, p := range kept {
			got, under := set.Get(key)
			if got != p {
				rt.Fatalf("%v: got another policy", key)
			}
			n := len(candidates)
			candidates = slices.DeleteFunc(candidates, func(c *matching.Policy) bool { return c == p })
			found := n - len(candidates)
			if slices.Contains(conditions, under) != (found == 1) || matching.Selects(p, proxy) && found != 1 || found > 1 {
				rt.Fatalf("%v: %d times a candidate under %v; it selects the proxy: %v", key, found, under,
					matching.Selects(p, proxy))
			}
		}
		if len(candidates) > 0 || len(slices.Collect(set.All())) != len(kept) {
			rt.Fatalf("the set has policies that were removed")
		}
	})
}

// TestOrderIsTotal: Compare is antisymmetric and transitive, and zero only for one policy and equal items.
func TestOrderIsTotal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string) (document, matching.Order) {
			d := rapid.Custom(drawPolicy).Draw(rt, name)
			item := &resources.TargetRef{Kind: rapid.SampledFrom([]string{"", resources.KindMesh,
				resources.KindMeshService, resources.KindMeshHTTPRoute}).Draw(rt, "item")}
			return d, matching.OrderOf(readPolicies(t, []document{d})[0], item)
		}
		d1, a := draw("a")
		d2, b := draw("b")
		_, c := draw("c")
		if matching.Compare(a, b) != -matching.Compare(b, a) {
			rt.Fatal("not antisymmetric")
		}
		if matching.Compare(a, b) <= 0 && matching.Compare(b, c) <= 0 && matching.Compare(a, c) > 0 {
			rt.Fatal("not transitive")
		}
		same := d1.Name == d2.Name && d1.Namespace == d2.Namespace && d1.Zone == d2.Zone
		if matching.Compare(a, b) == 0 && !same {
			rt.Fatalf("%+v and %+v have no order", d1, d2)
		}
	})
}

// TestOrderOfInputDoesNotMatter: any permutation of the policies gives the same rules.
func TestOrderOfInputDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		id := func(d document) string { return d.Zone + "/" + d.Namespace + "/" + d.Name }
		documents := rapid.SliceOfNDistinct(rapid.Custom(drawPolicy), 0, 8, id).Draw(rt, "policies")
		policies := readPolicies(t, documents)
		_, proxy := drawProxy(t, rt)
		shuffled := rapid.Permutation(slices.Clone(policies)).Draw(rt, "shuffled")
		for i := range proxy.Inbounds {
			want := fmt.Sprint(matching.Inbound(proxy, &proxy.Inbounds[i], policies))
			if got := fmt.Sprint(matching.Inbound(proxy, &proxy.Inbounds[i], shuffled)); got != want {
				rt.Fatalf("got %s, want %s", got, want)
			}
		}
	})
}

// FuzzNewPolicy: whatever JSON a peer sends as a spec, reading it terminates, and a spec that does not decode does not
// open an inbound.
func FuzzNewPolicy(f *testing.F) {
	f.Add([]byte(`{"default":{"allow":[{"spiffeID":{"type":"Exact","value":"spiffe://a/b"}}]}}`))
	f.Add([]byte(`{"targetRef":7,"rules":[{"default":{"deny":[{}]}}]}`))
	f.Add([]byte(`{"from":[{"default":{"action":"Deny"}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		spec, err := resources.NewSpec(resources.TypeMeshTrafficPermission, raw)
		if err != nil {
			return
		}
		r := &resources.Resource{Key: resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
			Name: "p"}, Spec: spec}
		p := matching.NewPolicy(r, resources.DefaultSystemNamespace)
		proxy, err := matching.NewProxy(document{Name: "dp", Zone: "zone-1", Spec: map[string]any{
			"networking": map[string]any{"inbound": []any{map[string]any{"port": 80}}},
		}}.resource(t, resources.TypeDataplane))
		if err != nil {
			t.Fatal(err)
		}
		rules := matching.Inbound(proxy, &proxy.Inbounds[0], []*matching.Policy{p})
		if _, err := resources.SpecAs[resources.Policy](r); err == nil {
			return
		}
		for _, rule := range rules.Items {
			if !rule.Closed {
				t.Fatalf("a spec that does not decode gives the rule %+v", rule)
			}
		}
	})
}
