package matching_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// explicitPolicies returns the policies in their explicit form. A policy that validation rejects at home stays
// unchanged: it has no single role, so its empty namespaces have no single meaning.
func explicitPolicies(t *rapid.T, policies []*matching.Policy) []*matching.Policy {
	out := make([]*matching.Policy, len(policies))
	for i, p := range policies {
		r := p.Resource
		home := resources.Home{Zone: r.Zone()}
		if r.Name == r.DisplayName() && resources.Validate(r, home) != nil {
			out[i] = p
			continue
		}
		explicit, err := resources.Explicit(r, resources.DefaultSystemNamespace)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := resources.Explicit(explicit, resources.DefaultSystemNamespace); err != nil ||
			!again.Spec.Equal(explicit.Spec) {
			t.Fatalf("not idempotent: %s becomes %s (%v)", explicit.Spec.JSON(), again.Spec.JSON(), err)
		}
		out[i] = matching.NewPolicy(explicit, resources.DefaultSystemNamespace)
		if out[i].Role != p.Role {
			t.Fatalf("%s: %s as written, %s in explicit form", p.KRI, p.Role, out[i].Role)
		}
	}
	return out
}

// TestExplicitFormIsEquivalent: every destination, route and section gets the same rules from policies in explicit
// form.
func TestExplicitFormIsEquivalent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt).world(t)
		want := everyRule(w.to())
		w.policies = explicitPolicies(rt, w.policies)
		if diff := cmp.Diff(want, everyRule(w.to())); diff != "" {
			rt.Fatalf("(-as written +explicit)\n%s", diff)
		}
	})
}

// TestExplicitFormIsEquivalentInbound: permissions in explicit form yield the same rules on inbounds, in the same
// order, whatever their targets.
func TestExplicitFormIsEquivalentInbound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		policies := distinct(readPolicies(t, rapid.SliceOfN(rapid.Custom(drawPermission), 0, 6).Draw(rt, "policies")))
		proxy, err := matching.NewProxy(drawDataplane(rt).resource(t, resources.TypeDataplane))
		if err != nil {
			rt.Fatal(err)
		}
		text := func(rules matching.Rules) []string {
			var out []string
			for i := range rules.Items {
				item := &rules.Items[i]
				out = append(out, fmt.Sprint(item.Origin, item.Index, item.Conf, item.Closed))
			}
			return append(out, fmt.Sprint(rules.Warnings))
		}
		explicit := matching.NewIndex(explicitPolicies(rt, policies))
		for i := range proxy.Inbounds {
			in := &proxy.Inbounds[i]
			if diff := cmp.Diff(text(matching.Inbound(proxy, in, policies)), text(explicit.Inbound(proxy, in))); diff != "" {
				rt.Fatalf("(-as written +explicit)\n%s", diff)
			}
		}
	})
}

// drawPermission is drawPolicy for the fields of a MeshTrafficPermission.
func drawPermission(t *rapid.T) document {
	d := drawPolicy(t)
	delete(d.Spec, "to")
	if target := d.Spec["targetRef"].(map[string]any); target["kind"] == nil || target["kind"] == resources.KindMesh {
		delete(target, "sectionName")
		if rapid.Bool().Draw(t, "has proxyTypes") {
			target["kind"], target["proxyTypes"] = resources.KindMesh,
				[]string{rapid.SampledFrom([]string{"Sidecar", "Gateway"}).Draw(t, "proxyType")}
		}
	}
	return d
}
