package matching_test

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestItemsOfTheSameLabelsAreResolvedOnce: many items that mean the same many services by labels do not each look for
// them.
func TestItemsOfTheSameLabelsAreResolvedOnce(t *testing.T) { // it counts allocations, so it runs alone
	const services, items = 500, 500
	var all []*matching.Destination
	for i := range services {
		d, err := matching.NewDestination(document{Name: fmt.Sprintf("s%d", i), Zone: "zone-1", Labels: map[string]string{"app": "x"},
			Spec: fields(t, "{ports: [{port: 80}]}")}.resource(t, resources.TypeMeshService))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	destinations := matching.NewDestinations(matching.DestinationsConfig{Zone: "zone-1"}, all)
	proxy, err := matching.NewProxy(document{Name: "one", Zone: "zone-1", Spec: fields(t, "{networking: {address: 192.0.2.1}}")}.
		resource(t, resources.TypeDataplane))
	if err != nil {
		t.Fatal(err)
	}
	cost := func(items int) float64 {
		item := "{targetRef: {kind: MeshService, labels: {app: x}}, default: {idleTimeout: 1s}}"
		policy := matching.NewPolicy(document{Name: "p", Zone: "zone-1", Spec: fields(t,
			"{to: ["+strings.Repeat(item+",", items-1)+item+"]}")}.resource(t, resources.TypeMeshTimeout), "")
		in := matching.ToInput{Type: resources.TypeMeshTimeout, Proxy: proxy, Policies: []*matching.Policy{policy},
			Destinations: destinations, Only: map[matching.ResourceKey]bool{all[0].Key(): true}}
		if rules := matching.To(in).ResourceRules; len(rules) != 1 || len(rules[all[0].Key()].Origins) != items {
			t.Fatalf("%d rules", len(rules))
		}
		return testing.AllocsPerRun(2, func() { matching.To(in) })
	}
	// Each service keeps the positions of the items that name it, and each item is merged.
	one, many := cost(1), cost(items)
	if perItem := (many - one) / items; perItem > 20 {
		t.Errorf("%.1f allocations for each item beside %d services: %.0f for one, %.0f for %d", perItem, services, one, many, items)
	}
}

// TestARouteOfManyRules: merging a route costs what its rules are, and not their square. A document has room for thousands.
func TestARouteOfManyRules(t *testing.T) { // it counts allocations, so it runs alone
	service, err := matching.NewDestination(document{Name: "s", Zone: "zone-1", Spec: fields(t, "{ports: [{port: 80, appProtocol: http}]}")}.
		resource(t, resources.TypeMeshService))
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := matching.NewProxy(document{Name: "one", Zone: "zone-1", Spec: fields(t, "{networking: {address: 192.0.2.1}}")}.
		resource(t, resources.TypeDataplane))
	if err != nil {
		t.Fatal(err)
	}
	cost := func(n int) float64 {
		var rules, names strings.Builder
		for i := range n {
			fmt.Fprintf(&rules, "{matches: [{path: {type: Exact, value: /%d}}], default: {}},", i)
			fmt.Fprintf(&names, "h%d.example.org,", i)
		}
		policy := matching.NewPolicy(document{Name: "p", Zone: "zone-1", Spec: fields(t, "{to: [{targetRef: {kind: MeshService, name: s}, "+
			"hostnames: ["+names.String()+"], rules: ["+rules.String()+"]}]}")}.resource(t, resources.TypeMeshHTTPRoute), "")
		in := matching.ToInput{Type: resources.TypeMeshHTTPRoute, Proxy: proxy, Policies: []*matching.Policy{policy},
			Destinations: matching.NewDestinations(matching.DestinationsConfig{Zone: "zone-1"}, []*matching.Destination{service})}
		if rules := matching.To(in).ResourceRules; len(rules) == 0 {
			t.Fatal("no rule")
		}
		return testing.AllocsPerRun(1, func() { matching.To(in) })
	}
	if few, many := cost(50), cost(500); many > 15*few {
		t.Errorf("%.0f allocations for 50 rules, %.0f for 500", few, many)
	}
}

// TestATrafficTargetOfManyTimesMany: sources, rules and matches of a few kilobytes each are multiplied up to a limit, and beyond
// it they allow nothing.
func TestATrafficTargetOfManyTimesMany(t *testing.T) { // it measures, so it runs alone
	const sources, rules, matches = 500, 20, 100
	list := func(n int, item string) string {
		var out strings.Builder
		for i := range n {
			out.WriteString(strings.ReplaceAll(item, "%d", fmt.Sprint(i)) + ",")
		}
		return "[" + out.String() + "]"
	}
	specs := matching.NewTrafficSpecs("", []*resources.Resource{
		document{Name: "g", Zone: "zone-1", Namespace: "shop", Spec: fields(t, "{matches: "+list(matches, "{name: m%d, pathRegex: /%d}")+"}")}.
			resource(t, resources.TypeHTTPRouteGroup),
		document{Name: "trust", Zone: "zone-1", Spec: fields(t, "{trustDomain: default.zone-1.mesh.local}")}.resource(t, resources.TypeMeshTrust)})
	target := document{Name: "t", Zone: "zone-1", Namespace: "shop", Spec: fields(t, "{destination: {kind: ServiceAccount, name: a}, sources: "+
		list(sources, "{kind: ServiceAccount, name: s%d}")+", rules: "+list(rules, "{kind: HTTPRouteGroup, name: g}")+"}")}.
		resource(t, resources.TypeTrafficTarget)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	problems := matching.NewTrafficTarget(target, specs).Problems()
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 20<<20 {
		t.Errorf("it took %d MiB", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
	if len(problems) != 1 || !strings.Contains(problems[0].Text, "from here on it allows nothing") {
		t.Errorf("its problems are %v", problems)
	}
}

// TestATrafficTargetBesideManyTrusts: a zone with many MeshTrusts takes nothing from what a TrafficTarget of the global allows
// to the service accounts of others.
func TestATrafficTargetBesideManyTrusts(t *testing.T) {
	t.Parallel()
	const sources, trusts, matches = 20, 500, 50
	var group, from strings.Builder
	for i := range matches {
		fmt.Fprintf(&group, "{name: m%d, pathRegex: /%d},", i, i)
	}
	for i := range sources {
		fmt.Fprintf(&from, "{kind: ServiceAccount, name: s%d},", i)
	}
	trust := func(zone, domain string) *resources.Resource {
		return document{Name: domain, Zone: zone, Spec: fields(t, "{trustDomain: "+domain+"}")}.resource(t, resources.TypeMeshTrust)
	}
	list := []*resources.Resource{
		document{Name: "g", Namespace: "shop", Spec: fields(t, "{matches: ["+group.String()+"]}")}.resource(t, resources.TypeHTTPRouteGroup),
		trust("zone-1", "default.zone-1.mesh.local"), trust("", "example.org"), trust("zone-2", "default.zone-2.mesh.local")}
	read := func() (allowed map[string]int, problems []matching.Warning) {
		target := matching.NewTrafficTarget(document{Name: "t", Namespace: "shop", Spec: fields(t, "{destination: {kind: ServiceAccount, name: a}, "+
			"sources: ["+from.String()+"], rules: [{kind: HTTPRouteGroup, name: g}]}")}.resource(t, resources.TypeTrafficTarget),
			matching.NewTrafficSpecs("", list))
		proxy, err := matching.NewProxy(document{Name: "api", Namespace: "shop", Zone: "zone-1", Labels: map[string]string{
			resources.LabelServiceAccount: "a"}, Spec: fields(t, "{networking: {inbound: [{port: 80}]}}")}.resource(t, resources.TypeDataplane))
		if err != nil {
			t.Fatal(err)
		}
		allowed = map[string]int{}
		for _, rule := range matching.Inbound(proxy, &proxy.Inbounds[0], []*matching.Policy{target}).Items {
			for _, one := range rule.Conf.Allow {
				domain, _, _ := strings.Cut(strings.TrimPrefix(one.SpiffeID.Value, "spiffe://"), "/")
				allowed[domain]++
			}
		}
		return allowed, target.Problems()
	}
	before, problems := read()
	if want := sources * matches; len(before) != 3 || before["default.zone-1.mesh.local"] != want || len(problems) > 0 {
		t.Fatalf("%v, %v", before, problems)
	}
	for i := range trusts {
		list = append(list, trust("zone-2", fmt.Sprintf("a%d.zone-2.mesh.local", i)))
	}
	if after, problems := read(); !maps.Equal(after, before) || len(problems) != 1 || !strings.Contains(problems[0].Text, "one trust domain of each zone") {
		t.Errorf("it allows %v, with the problems %v", after, problems)
	}
}
