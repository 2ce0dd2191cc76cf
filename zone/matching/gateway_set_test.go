package matching_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestAProxyServesTheSameOfSomeGatewaysAndOfAll: of a set of MeshGateways that has been changed in any way, a proxy
// serves the one that it serves of all of them, and has all tags of a selector of each that it may serve.
func TestAProxyServesTheSameOfSomeGatewaysAndOfAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		set, kept := matching.NewGateways(none), map[resources.Key]*resources.Resource{}
		for range rapid.IntRange(1, 4).Draw(rt, "changes") {
			for _, g := range drawGateways(t, rt) {
				set.Add(g)
				kept[g.Key] = g
				if again := g.Clone(); rapid.Bool().Draw(rt, "written again") {
					if !set.Add(again) {
						rt.Fatalf("others may serve %v when it is written again", g.Key)
					}
					kept[g.Key] = again
				}
			}
			for _, key := range slices.SortedFunc(maps.Keys(kept), func(a, b resources.Key) int { return strings.Compare(a.String(), b.String()) }) {
				if rapid.IntRange(0, 3).Draw(rt, "removed") == 0 {
					set.Remove(key)
					delete(kept, key)
				}
			}
		}
		all := slices.Collect(maps.Values(kept))
		_, proxy := drawProxy(t, rt)
		candidates := set.Candidates(proxy)
		is := proxy.WithGateways(candidates, resources.DefaultSystemNamespace).Served()
		if want := proxy.WithGateways(all, resources.DefaultSystemNamespace).Served(); is != want {
			rt.Fatalf("serves %v of %d candidates, want %v of %d", is, len(candidates), want, len(all))
		}
		if got := len(slices.Collect(set.All())); got != len(kept) {
			rt.Fatalf("%d MeshGateways, want %d", got, len(kept))
		}
		for _, g := range append(all, candidates...) {
			if kept[g.Key] != g {
				rt.Fatalf("%v was removed", g.Key)
			}
			if proxy.MayServe(g, resources.DefaultSystemNamespace) && !hasAllOfOne(proxy, g) {
				rt.Fatalf("it may serve %v without the tags of a selector", g.Key)
			}
		}
	})
}

func none(func(*resources.Resource) bool) {}

func hasAllOfOne(proxy *matching.Proxy, g *resources.Resource) bool {
	has := maps.Collect(withNothing(proxy.GatewayTags()))
	for tags := range matching.SelectorsOf(g) {
		if !slices.ContainsFunc(tags, func(tag matching.GatewayTag) bool { _, ok := has[tag]; return !ok }) {
			return true
		}
	}
	return false
}

func withNothing[K any](keys iter.Seq[K]) iter.Seq2[K, struct{}] {
	return func(yield func(K, struct{}) bool) {
		for k := range keys {
			if !yield(k, struct{}{}) {
				return
			}
		}
	}
}

// TestAProxyIsComparedWithFewGateways: of many MeshGateways that require a common tag and one of their own, a proxy is
// compared with that of its own.
func TestAProxyIsComparedWithFewGateways(t *testing.T) {
	t.Parallel()
	set := matching.NewGateways(func(yield func(*resources.Resource) bool) {
		for i := range 100 {
			if !yield(gatewayOf(t, fmt.Sprintf("g%d", i), "zone-1",
				fmt.Sprintf("{match: {kuma.io/service: edge, of: o%d}}", i))) {
				return
			}
		}
	})
	dp := document{Name: "edge-1", Zone: "zone-1", Spec: fields(t,
		"{networking: {address: 192.0.2.1, gateway: {type: BUILTIN, tags: {kuma.io/service: edge, of: o7}}}}")}
	proxy, err := matching.NewProxy(dp.resource(t, resources.TypeDataplane))
	if err != nil {
		t.Fatal(err)
	}
	// The first one came when no tag was rarer than another.
	if got := set.Candidates(proxy); len(got) > 2 {
		t.Errorf("%d candidates of 100 MeshGateways", len(got))
	}
	if served := proxy.WithGateways(set.Candidates(proxy), "").Served(); served == nil || served.Name != "g7" {
		t.Errorf("serves %v, want g7", served)
	}
}

// TestExcludingADataplaneAllocatesNothing: a write compares a policy, or a MeshGateway, with up to a thousand
// Dataplanes.
func TestExcludingADataplaneAllocatesNothing(t *testing.T) { // it counts allocations, so it runs alone
	gateway := gatewayOf(t, "edge", "zone-1", "{match: {kuma.io/service: edge}}")
	dataplane := func(name, networking string) *resources.Resource {
		return document{Name: name, Zone: "zone-1", Spec: fields(t, "{networking: {address: 192.0.2.1, "+networking+"}}")}.
			resource(t, resources.TypeDataplane)
	}
	other := dataplane("other", "gateway: {type: BUILTIN, tags: {kuma.io/service: other}}")
	sidecar := dataplane("sidecar", "inbound: [{port: 80}]")
	const timeout = `{targetRef: {kind: %s, name: %s}, to: [{targetRef: {kind: Mesh}, default: {idleTimeout: 1s}}]}`
	byName := func(kind, name string) *resources.Resource {
		return document{Name: "p", Zone: "zone-1", Spec: fields(t, fmt.Sprintf(timeout, kind, name))}.
			resource(t, resources.TypeMeshTimeout)
	}
	for name, c := range map[string]struct {
		of        *resources.Resource
		dataplane *resources.Resource
	}{
		"a MeshGateway and another gateway's": {gateway, other},
		"a MeshGateway and a sidecar's":       {gateway, sidecar},
		"a gateway's policy and a sidecar's":  {byName("MeshGateway", "edge"), sidecar},
		"a Dataplane's policy and another's":  {byName("Dataplane", "one"), other},
		"a policy by a hashed name":           {byName("Dataplane", "one-1234567890123456"), other},
	} {
		selection := matching.NewSelection(c.of, resources.DefaultSystemNamespace, slices.Values([]*resources.Resource{gateway}))
		if selection.Has(c.dataplane) {
			t.Errorf("%s: is selected", name)
		}
		if n := testing.AllocsPerRun(100, func() { selection.Has(c.dataplane) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
