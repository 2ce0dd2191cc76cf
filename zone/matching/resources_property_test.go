package matching_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

var (
	drawZone      = rapid.SampledFrom([]string{"zone-1", "zone-2"})
	drawNamespace = rapid.SampledFrom([]string{"", "ns-a", "ns-b"})
	drawName      = rapid.SampledFrom([]string{"one", "two", "three"})
)

func drawLabels(t *rapid.T) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom([]string{"app", "team"}), rapid.SampledFrom([]string{"x", "y"}), 0,
		2).Draw(t, "labels")
}

// drawRef draws a reference to a service or route, by name, hashed name or labels.
func drawRef(t *rapid.T, kinds ...string) map[string]any {
	ref := map[string]any{"kind": rapid.SampledFrom(kinds).Draw(t, "kind")}
	if ref["kind"] == resources.KindMesh {
		return ref
	}
	switch rapid.IntRange(0, 3).Draw(t, "by") {
	case 0:
		labels := drawLabels(t)
		if ns := drawNamespace.Draw(t, "ns"); ns != "" {
			labels[resources.LabelNamespace] = ns
		}
		if len(labels) == 0 {
			labels["app"] = "x"
		}
		ref["labels"] = labels
	case 1:
		ref["name"] = string(hashNames(fmt.Appendf(nil, "HASH(default %s %s %s)", drawName.Draw(t, "name"),
			drawZone.Draw(t, "zone"), drawNamespace.Draw(t, "ns"))))
	default:
		ref["name"] = drawName.Draw(t, "name")
		if ns := drawNamespace.Draw(t, "ns"); ns != "" {
			ref["namespace"] = ns
		}
	}
	if ref["kind"] == resources.KindMeshService && rapid.Bool().Draw(t, "section") {
		ref["sectionName"] = rapid.SampledFrom([]string{"http", "80", "81"}).Draw(t, "sectionName")
	}
	return ref
}

var sections = map[string]any{"ports": []any{map[string]any{"port": 80, "name": "http"}, map[string]any{"port": 81}}}

// drawWorld draws services and routes of two zones as zone-1 sees them, a proxy of one of the zones, and policies.
func drawWorld(t *rapid.T) *resourceCase {
	c := &resourceCase{Proxy: &document{Name: "dp", Zone: drawZone.Draw(t, "zone"),
		Namespace: drawNamespace.Draw(t, "ns"), Labels: drawLabels(t)}}
	seen := map[string]bool{}
	add := func(d document) {
		d.Copy = d.Zone != "zone-1"
		key := d.Type + "/" + d.Zone + "/" + d.Namespace + "/" + d.Name
		if !seen[key] {
			seen[key] = true
			c.Resources = append(c.Resources, d)
		}
	}
	for range rapid.IntRange(0, 6).Draw(t, "services") {
		add(document{Type: "MeshService", Name: drawName.Draw(t, "name"), Zone: drawZone.Draw(t, "zone"),
			Namespace: drawNamespace.Draw(t, "ns"), Labels: drawLabels(t), Spec: sections})
	}
	for range rapid.IntRange(0, 4).Draw(t, "routes") {
		var to []any
		for range rapid.IntRange(1, 2).Draw(t, "parents") {
			to = append(to, map[string]any{"targetRef": drawRef(t, "MeshService")})
		}
		add(document{Type: "MeshHTTPRoute", Name: drawName.Draw(t, "name"), Zone: drawZone.Draw(t, "zone"),
			Namespace: drawNamespace.Draw(t, "ns"), Labels: drawLabels(t), Spec: map[string]any{"to": to}})
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "policies") {
		var to []any
		for j := range rapid.IntRange(1, 3).Draw(t, "items") {
			item := fmt.Sprintf("%d.%d", i, j)
			to = append(to, map[string]any{
				"targetRef": drawRef(t, "Mesh", "MeshService", "MeshService", "MeshHTTPRoute"),
				"default":   map[string]any{"last": item, item: true, "appendAll": []any{item}},
			})
		}
		target := map[string]any{"kind": rapid.SampledFrom([]string{"Mesh", "Dataplane"}).Draw(t, "top")}
		add(document{Type: "MeshRetry", Name: fmt.Sprintf("p%d", i),
			Zone:      rapid.SampledFrom([]string{"", "zone-1", "zone-2"}).Draw(t, "zone"),
			Namespace: drawNamespace.Draw(t, "ns"), Spec: map[string]any{"targetRef": target, "to": to}})
	}
	return c
}

// naiveItem is an item of `to` with its targets.
type naiveItem struct {
	policy *matching.Policy
	index  int
	order  matching.Order
	conf   json.RawMessage
	mesh   bool
	means  map[matching.ResourceKey]bool
}

// naiveItems lists and sorts the items of every selecting policy (seed 002, "New approach").
func naiveItems(t rapid.TB, w *world) []naiveItem {
	var items []naiveItem
	for _, p := range w.policies {
		if p.Resource.Type != resources.TypeMeshRetry || !matching.Selects(p, w.proxy) {
			continue
		}
		spec, err := resources.SpecAs[resources.Policy](p.Resource)
		if err != nil {
			t.Fatal(err)
		}
		for i := range spec.To {
			ref := &spec.To[i].TargetRef
			it := naiveItem{policy: p, index: i, order: matching.OrderOf(p, ref), conf: spec.To[i].Default,
				mesh: ref.KindOrMesh() == resources.KindMesh, means: map[matching.ResourceKey]bool{}}
			targets, _ := w.destinations.Resolve(p.Referrer(), ref)
			for _, target := range targets {
				r := target.Destination.Resource
				if p.Role != resources.RoleProducer || r.Zone() == p.Resource.Zone() &&
					r.HomeNamespace() == p.Resource.HomeNamespace() {
					it.means[target.Key()] = true
				}
			}
			items = append(items, it)
		}
	}
	slices.SortStableFunc(items, func(a, b naiveItem) int { return matching.Compare(a.order, b.order) })
	return items
}

// naiveFold is `for item in sorted: if includes(item, r): merge`, for traffic that belongs to all of the keys.
func naiveFold(t rapid.TB, items []naiveItem, keys ...matching.ResourceKey) string {
	var confs []json.RawMessage
	var origins []string
	for _, it := range items {
		if it.mesh ||
			slices.ContainsFunc(keys, func(k matching.ResourceKey) bool { return it.means[k] || it.means[k.Whole()] }) {
			confs = append(confs, it.conf)
			origins = append(origins, fmt.Sprintf("%s#%d", it.policy.KRI.Name, it.index))
		}
	}
	if confs == nil {
		return "none"
	}
	merged, err := matching.MergeConfs(confs...)
	if err != nil {
		t.Fatal(err)
	}
	return ruleWant{Conf: rawMap(merged), Origins: origins}.text()
}

func (w *world) to() matching.ToRules {
	return matching.To(matching.ToInput{Type: resources.TypeMeshRetry, Proxy: w.proxy, Policies: w.policies,
		Destinations: w.destinations})
}

// TestLookupEqualsNaiveFold compares the lookups for services, for their sections, and for routes on each service that
// they are for.
func TestLookupEqualsNaiveFold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt).world(t)
		items, rules := naiveItems(rt, w), w.to()
		equal := func(what string, want string, got *matching.ResourceRule) {
			if want != resourceText(got) {
				rt.Fatalf("%s:\nwant %s\ngot  %s", what, want, resourceText(got))
			}
		}
		for _, d := range w.destinations.All() {
			key := d.Key()
			for _, parent := range w.destinations.Parents(key) {
				equal(key.String()+" > "+parent.String(), naiveFold(rt, items, key, parent), rules.ForRoute(key, parent))
			}
			if d.Resource.Type != resources.TypeMeshService {
				continue
			}
			equal(key.String(), naiveFold(rt, items, key), rules.For(key))
			for _, section := range d.Sections() {
				key.Section = section
				equal(key.String(), naiveFold(rt, items, key), rules.For(key))
			}
		}
		for key, rule := range rules.ResourceRules {
			equal("rule of "+key.String(), naiveFold(rt, items, append(w.destinations.Parents(key), key)...), rule)
		}
	})
}

// TestOnlyGivesTheSameRules: the rules for a subset of the services equal those from a computation for all services.
func TestOnlyGivesTheSameRules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt).world(t)
		only := map[matching.ResourceKey]bool{}
		for _, d := range w.destinations.All() {
			if rapid.Bool().Draw(rt, "only") {
				only[d.Key()] = true
			}
		}
		all := w.to()
		some := matching.To(matching.ToInput{Type: resources.TypeMeshRetry, Proxy: w.proxy, Policies: w.policies,
			Destinations: w.destinations, Only: only})
		for _, d := range w.destinations.All() {
			for _, service := range append(w.destinations.Parents(d.Key()), d.Key()) {
				if !only[service.Whole()] {
					continue
				}
				for _, section := range []string{service.Section, "http", "81"} {
					service.Section = section
					if want, got := resourceText(all.ForRoute(d.Key(), service)),
						resourceText(some.ForRoute(d.Key(), service)); want != got {
						rt.Fatalf("%s > %s:\nwant %s\ngot  %s", d.Key(), service, want, got)
					}
				}
			}
		}
	})
}

// TestRulesDoNotDependOnInputOrder: the order of policies, services and routes does not affect the rules.
func TestRulesDoNotDependOnInputOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawWorld(rt)
		want := everyRule(c.world(t).to())
		c.Resources = rapid.Permutation(c.Resources).Draw(rt, "permutation")
		if diff := cmp.Diff(want, everyRule(c.world(t).to())); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func everyRule(r matching.ToRules) map[string]string {
	out := map[string]string{"tags": strings.Join(subsetTexts(r.Rules), "\n")}
	for k, rule := range r.ResourceRules {
		out[k.String()] = resourceText(rule)
	}
	for k, rule := range r.RouteRules {
		out[k.Route.String()+" > "+k.Service.String()] = resourceText(rule)
	}
	return out
}

// TestOrderOfItemsIsTotal: exactly one of less, equal and greater holds, the order is transitive, and only items of one
// policy are equal.
func TestOrderOfItemsIsTotal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		items := naiveItems(rt, drawWorld(rt).world(t))
		for _, a := range items {
			for _, b := range items {
				ab := matching.Compare(a.order, b.order)
				if ab != -matching.Compare(b.order, a.order) {
					rt.Fatal("not antisymmetric")
				}
				if ab == 0 && a.policy != b.policy {
					rt.Fatalf("%s and %s have one place", a.policy.KRI, b.policy.KRI)
				}
				for _, c := range items {
					if ab <= 0 && matching.Compare(b.order, c.order) <= 0 && matching.Compare(a.order, c.order) > 0 {
						rt.Fatal("not transitive")
					}
				}
			}
		}
	})
}
