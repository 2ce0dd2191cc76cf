package matching_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// The reference of this file is written from the documents and shares nothing with the package: who is selected (seed
// 004, "Producers and consumers"), in which order items merge (seed 004, "Order when merging"; seed 002, "New
// approach"), and what rules become (seed 000, "Problem 2").

// listOf is the list of each type that is drawn.
var listOf = map[resources.Type][]string{
	resources.TypeMeshRetry: {"to"}, resources.TypeMeshCircuitBreaker: {"to", "rules"}, resources.TypeMeshHealthCheck: {"to"},
	resources.TypeMeshLoadBalancingStrategy: {"to"}, resources.TypeMeshTimeout: {"to", "rules", "from"}, resources.TypeMeshAccessLog: {"to", "rules", "from"},
	resources.TypeMeshRateLimit: {"rules", "from"}, resources.TypeMeshFaultInjection: {"rules", "from"}, resources.TypeMeshTLS: {"rules", "from"},
	resources.TypeMeshTrace: {"default"}, resources.TypeMeshMetric: {"default"}, resources.TypeMeshPassthrough: {"default"}, resources.TypeMeshProxyPatch: {"default"},
	resources.TypeMeshHTTPRoute: {"to"}, resources.TypeMeshTCPRoute: {"to"},
}

// routeTypes are the types whose rules do not merge.
var routeTypes = []resources.Type{resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute}

// drawnItem is an item of a drawn policy: whom it is about, and its conf.
type drawnItem struct {
	service, namespace string // of `to`; no service is the mesh
	match              string // of `rules`; empty is every request
	conf               map[string]any
	rules              []drawnRule // of a route
}

type drawnPolicy struct {
	document
	list string
	top  string // none, labels, name, gateway
	// gateway is the name of the MeshGateway that it is for.
	gateway string
	items   []drawnItem
}

// edge is the MeshGateway of a proxy that serves one.
const edge = "edge"

func drawSeedPolicy(t *rapid.T, typ resources.Type, at int) drawnPolicy {
	pick := func(what string, values ...string) string { return rapid.SampledFrom(values).Draw(t, what) }
	p := drawnPolicy{list: pick("list", listOf[typ]...), top: pick("top", "none", "none", "labels", "name", "gateway")}
	p.document = document{Type: string(typ), Name: fmt.Sprintf("%s-%d", pick("name", "a", "b", "c"), at), Zone: pick("zone", "", "zone-1", "zone-2")}
	if p.Zone != "" {
		p.Namespace = pick("namespace", "", "kuma-system", "a", "b")
	}
	target := map[string]any{"kind": "Mesh"}
	switch p.top {
	case "labels":
		target = map[string]any{"kind": "Dataplane", "labels": map[string]any{"app": pick("app", "x", "y")}}
	case "name":
		target = map[string]any{"kind": "Dataplane", "name": "dp"}
	case "gateway":
		p.gateway = pick("gateway", edge, edge, "other")
		target = map[string]any{"kind": "MeshGateway", "name": p.gateway}
	}
	p.Spec = map[string]any{"targetRef": target}
	var list []any
	other := pick("whose", "own", "others") // the namespace of what a policy in a namespace sends to
	for range rapid.IntRange(1, 3).Draw(t, "items") {
		it := drawnItem{conf: drawConf(t, 0)}
		written := map[string]any{"default": it.conf}
		switch p.list {
		case "to":
			ref := map[string]any{"kind": "Mesh"}
			if pick("to", "mesh", "service", "service") == "service" || inNamespace(p.document) {
				it.service, it.namespace = pick("service", "one", "two"), pick("service namespace", "a", "b")
				if inNamespace(p.document) {
					it.namespace = p.Namespace
					if other == "others" {
						it.namespace = map[string]string{"a": "b", "b": "a"}[p.Namespace]
					}
				}
				ref = map[string]any{"kind": "MeshService", "name": it.service, "namespace": it.namespace}
			}
			written["targetRef"] = ref
		case "rules":
			if path := pick("match", "", "/a", "/b"); path != "" {
				match := map[string]any{"path": map[string]any{"type": "Exact", "value": path}}
				it.match, written["matches"] = path, []any{match}
			}
		case "from":
			written["targetRef"] = map[string]any{"kind": "Mesh"}
		}
		if slices.Contains(routeTypes, typ) {
			delete(written, "default")
			it.rules = drawRules(t, typ)
			written["rules"] = writtenRules(it.rules)
		}
		p.items, list = append(p.items, it), append(list, written)
		if p.list == "default" {
			p.Spec["default"] = it.conf
			return p
		}
	}
	p.Spec[p.list] = list
	return p
}

func inNamespace(d document) bool { return d.Namespace != "" && d.Namespace != "kuma-system" }

// role is 0 for system, 1 for a producer, 2 for a consumer and 3 for a workload owner.
func (p *drawnPolicy) role() int {
	switch {
	case !inNamespace(p.document):
		return 0
	case p.list != "to":
		return 3
	case p.items[0].namespace == p.Namespace:
		return 1
	}
	return 2
}

// selects reports whether a policy is about a proxy, which may serve a gateway.
func (p *drawnPolicy) selects(proxy document, serves string) bool {
	switch p.role() {
	case 0:
		if p.Zone != "" && p.Zone != proxy.Zone {
			return false
		}
	case 2, 3:
		if p.Zone != proxy.Zone || p.Namespace != proxy.Namespace {
			return false
		}
	}
	switch p.top {
	case "labels":
		return p.Spec["targetRef"].(map[string]any)["labels"].(map[string]any)["app"] == proxy.Labels["app"]
	case "name":
		return p.role() != 1 || p.Zone == proxy.Zone && p.Namespace == proxy.Namespace
	case "gateway":
		return p.gateway == serves
	}
	return true
}

// placed is an item and the policy that it is of.
type placed struct {
	*drawnPolicy
	drawnItem
}

// inOrder returns the items of the policies of a type that select a proxy, the last of which wins.
func inOrder(policies []drawnPolicy, proxy document, serves string) (all []placed) {
	for i := range policies {
		if p := &policies[i]; p.selects(proxy, serves) {
			for _, it := range p.items {
				all = append(all, placed{p, it})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		top := func(p placed) int { return slices.Index([]string{"none", "labels", "name", "gateway"}, p.top) }
		yes := func(b bool) int {
			if b {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(top(a), top(b)), cmp.Compare(yes(a.Zone != ""), yes(b.Zone != "")), cmp.Compare(a.role(), b.role()),
			cmp.Compare(yes(a.service != ""), yes(b.service != "")), cmp.Compare(b.Name, a.Name))
	})
	return all
}

// folded merges the confs of the items that count. It returns nil if none does.
func folded(items []placed, counts func(placed) bool) any {
	var out any
	for _, it := range items {
		if counts(it) {
			out = mergeReference("", out, any(it.conf))
		}
	}
	return out
}

func asAny(t *rapid.T, raw json.RawMessage) (out any) {
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// seedWorld is a proxy with services and policies of a type.
type seedWorld struct {
	*world
	// items are those that count for the proxy, the last of which wins.
	items []placed
	// serves is the gateway that the proxy serves, if any.
	serves string
}

func drawSeedWorld(t *testing.T, rt *rapid.T, typ resources.Type) *seedWorld {
	c := &resourceCase{Type: string(typ), Proxy: &document{Name: "dp", Zone: "zone-1", Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "ns"),
		Labels: map[string]string{"app": rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "app")}}}
	d := &seedWorld{serves: rapid.SampledFrom([]string{"", "", edge}).Draw(rt, "serves")}
	if d.serves != "" {
		c.Proxy.Spec = fields(t, "{networking: {address: 192.0.2.1, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}}}")
	}
	for _, service := range []string{"one", "two"} {
		for _, namespace := range []string{"a", "b"} {
			c.Resources = append(c.Resources, document{Type: "MeshService", Name: service, Zone: "zone-1", Namespace: namespace, Spec: sections})
		}
	}
	var policies []drawnPolicy
	for i := range rapid.IntRange(0, 6).Draw(rt, "policies") {
		p := drawSeedPolicy(rt, typ, i)
		if p.role() == 1 && p.Zone != "zone-1" {
			continue // its services are of another zone
		}
		if p.top == "gateway" && p.role() > 1 {
			continue // a server refuses it
		}
		policies, c.Resources = append(policies, p), append(c.Resources, p.document)
	}
	d.world, d.items = c.world(t), inOrder(policies, *c.Proxy, d.serves)
	if d.serves != "" {
		selector := `{match: {kuma.io/service: edge, k8s.kuma.io/namespace: "*"}}`
		d.proxy = d.proxy.WithGateways([]*resources.Resource{gatewayOf(t, edge, "zone-1", selector)}, resources.DefaultSystemNamespace)
		if d.proxy.Served() == nil {
			rt.Fatal("the proxy serves no gateway")
		}
	}
	return d
}

// TestConfsAreThoseOfTheSeeds: with any set of policies of each type, a proxy, which may be that of a gateway, has the
// confs of the reference, for what it sends to each service, for what it receives by each match, and as a whole.
func TestConfsAreThoseOfTheSeeds(t *testing.T) {
	types := slices.DeleteFunc(slices.Sorted(maps.Keys(listOf)), func(typ resources.Type) bool { return slices.Contains(routeTypes, typ) })
	checkMany(t, func(rt *rapid.T) {
		typ := rapid.SampledFrom(types).Draw(rt, "type")
		w := drawSeedWorld(t, rt, typ)
		items := w.items
		same := func(what string, want any, got json.RawMessage) {
			if diff := gocmp.Diff(want, asAny(rt, got)); diff != "" {
				rt.Fatalf("%s (-want +got):\n%s", what, diff)
			}
		}
		if slices.Contains(listOf[typ], "to") {
			rules := matching.To(matching.ToInput{Type: typ, Proxy: w.proxy, Policies: w.policies, Destinations: w.destinations})
			for _, d := range w.destinations.All() {
				want := folded(items, func(it placed) bool {
					return it.list == "to" && (it.service == "" || it.service == d.Resource.DisplayName() && it.namespace == d.Resource.HomeNamespace())
				})
				var got json.RawMessage
				if rule := rules.For(d.Key()); rule != nil {
					got = rule.Conf
				}
				same("to "+d.Key().String(), want, got)
			}
		}
		if slices.Contains(listOf[typ], "rules") && w.serves == "" { // a gateway has no inbounds
			got := map[string]json.RawMessage{}
			for _, rule := range matching.InboundConfs(matching.InboundInput{Type: typ, Proxy: w.proxy, Inbound: &w.proxy.Inbounds[0], Policies: w.policies}).Items {
				got[string(rule.Match)] = rule.Conf
			}
			for match, written := range map[string]string{"": "", "/a": `{"path":{"type":"Exact","value":"/a"}}`, "/b": `{"path":{"type":"Exact","value":"/b"}}`} {
				same("received "+match, folded(items, func(it placed) bool { return it.list != "to" && it.match == match }), got[written])
			}
		}
		if listOf[typ][0] == "default" {
			same("the proxy", folded(items, func(placed) bool { return true }), matching.ProxyConf(typ, w.proxy, w.policies).Conf)
		}
	}, nil)
}

// TestEveryPolicyTypeIsDrawn: the reference covers all types of the registry but permissions, which have one of their
// own (zone/rbac).
func TestEveryPolicyTypeIsDrawn(t *testing.T) {
	for _, d := range resources.Descriptors() {
		if d.Policy != nil && d.Type != resources.TypeMeshTrafficPermission && listOf[d.Type] == nil {
			t.Errorf("%s is not drawn", d.Type)
		}
	}
}
