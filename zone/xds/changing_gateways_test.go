package xds

import (
	"fmt"
	"maps"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// edge writes the Dataplane of a gateway anew.
func (c *changing) edge(name string, at int) {
	networking := map[string]any{"address": fmt.Sprintf("192.0.2.%d", 10+at)}
	if c.chance(8) { // it is no gateway for a while
		networking["inbound"] = []any{map[string]any{"name": "main", "port": 80,
			"tags": map[string]any{"kuma.io/service": "edge"}}}
	} else {
		networking["gateway"] = map[string]any{"type": c.one("BUILTIN", "BUILTIN", "BUILTIN", "DELEGATED"),
			"tags": map[string]any{"kuma.io/service": "edge", "of": c.one("a", "b")}}
	}
	c.put(dataplaneKey(name), map[string]string{"app": c.one("backend", "other").(string)},
		map[string]any{"networking": networking})
}

// gateway writes or removes a MeshGateway, or a route for one.
func (c *changing) gateway() {
	of := c.one("g", "h").(string)
	key := resources.Key{Type: resources.TypeMeshGateway, Mesh: "default", Name: of}
	route := c.chance(2)
	if route {
		key.Type = c.one(resources.TypeMeshHTTPRoute, resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute).(resources.Type)
		key.Name = c.one("of-", "also-of-").(string) + of
	}
	if c.chance(4) {
		c.apply(store.Op{Delete: key})
		return
	}
	if route {
		c.route(key, of)
		return
	}
	r := testResource(key, nil, map[string]any{"selectors": c.selectors(), "tags": map[string]any{"tier": c.one("x", "y")},
		"conf": map[string]any{"listeners": c.listeners()}})
	old := c.store.Snapshot().Get(key)
	if old != nil && c.chance(3) { // nothing else changes
		r.Spec = old.Spec
	}
	if r.Labels = maps.Clone(r.Labels); c.chance(3) { // it comes from the global, or goes by another name
		r.Labels[resources.LabelZone] = c.one("", testHome.Zone, "zone-2").(string)
		r.Labels[resources.LabelDisplayName] = c.one("g", "h", "of-both").(string)
	}
	c.apply(store.Op{Put: r})
}

func (c *changing) selectors() []any {
	selectors := []any{map[string]any{"match": c.one(
		map[string]any{"kuma.io/service": "edge"}, map[string]any{"kuma.io/service": "edge"},
		map[string]any{"kuma.io/service": "edge", "of": c.one("a", "b")},
		map[string]any{"of": "*", "kuma.io/zone": testHome.Zone}, map[string]any{"of": "c"})}}
	if c.chance(3) {
		selectors = append(selectors, map[string]any{"match": map[string]any{"of": c.one("a", "b")}})
	}
	return selectors
}

// listeners returns listeners of a MeshGateway, of which some may not go together.
func (c *changing) listeners() (out []any) {
	for range 1 + c.dice.IntN(3) {
		l := map[string]any{"port": c.one(8080, 8080, 8081), "protocol": c.one("HTTP", "HTTP", "HTTP", "HTTP", "TCP", "TLS", "HTTPS"),
			"hostname": c.one("*", "a.example", "b.example", "*.example")}
		switch l["protocol"] {
		case "TLS":
			l["tls"] = map[string]any{"mode": "PASSTHROUGH"}
		case "HTTPS":
			l["tls"] = map[string]any{"mode": "TERMINATE", "certificates": []any{map[string]any{"inlineString": c.one("none", string(c.pair))}}}
		}
		if c.chance(3) {
			l["tags"] = map[string]any{"tier": c.one("x", "z")}
		}
		out = append(out, l)
	}
	return out
}

// route writes a route of a gateway, which another server may have read otherwise.
func (c *changing) route(key resources.Key, of string) {
	target := map[string]any{"kind": "MeshGateway", "name": of}
	switch {
	case c.chance(6):
		target = map[string]any{"kind": "MeshGateway", "labels": map[string]any{resources.LabelDisplayName: c.one(of, "of-both")}}
	case c.chance(6):
		target["name"] = "of-both"
	case c.chance(4):
		target["tags"] = map[string]any{"tier": c.one("x", "y", "z")}
	}
	var rules []any
	for range 1 + c.dice.IntN(2) {
		conf := map[string]any{"backendRefs": []any{c.backendRef()}}
		if c.chance(3) {
			conf["backendRefs"] = []any{c.backendRef(), c.backendRef()}
		}
		rule := map[string]any{"default": conf}
		if key.Type == resources.TypeMeshHTTPRoute {
			rule["matches"] = c.one([]any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": c.one("/", "/a")}}},
				[]any{map[string]any{"method": "GET"}, map[string]any{"path": map[string]any{"type": "Exact", "value": c.one("/b", "/a")}}},
				[]any{map[string]any{"path": c.one("it is none", map[string]any{"type": "Exact", "value": "/c"})}})
			switch c.dice.IntN(4) {
			case 0:
				conf["filters"] = []any{map[string]any{"type": "RequestMirror", "requestMirror": map[string]any{"backendRef": c.backendRef()}}}
			case 1:
				conf["filters"] = []any{map[string]any{"type": "RequestHeaderModifier",
					"requestHeaderModifier": map[string]any{"set": []any{map[string]any{"name": "x", "value": c.one("y", "z")}}}}}
			}
		}
		rules = append(rules, rule)
	}
	item := map[string]any{"targetRef": map[string]any{"kind": "Mesh"}, "rules": rules}
	if key.Type == resources.TypeMeshHTTPRoute && c.chance(3) {
		item["hostnames"] = c.one([]any{"a.example"}, []any{"*.example", "b.example"}, "it is no list", []any{"not a host"})
	}
	labels := map[string]string{}
	if c.chance(8) {
		labels[resources.LabelEffect] = "shadow"
	}
	c.put(key, labels, map[string]any{"targetRef": target, "to": []any{item}})
}

func (c *changing) backendRef() map[string]any {
	ref := map[string]any{"kind": "MeshService", "name": c.one("backend", "plain", "database", "none"), "port": 80 + c.dice.IntN(2)}
	switch {
	case c.chance(5):
		ref = map[string]any{"kind": "MeshExternalService", "name": c.one("out", "out-2")}
	case c.chance(3):
		ref["weight"] = c.dice.IntN(3)
	}
	return ref
}

// TestAGatewayIsComparedWithFewProxies: a change of a MeshGateway that requires a common tag, and one that only one
// proxy has, is held against that proxy only, and so is one of a policy for it.
func TestAGatewayIsComparedWithFewProxies(t *testing.T) {
	t.Parallel()
	const edges = 50
	s := store.NewMemory()
	gateway := func(of string, n int) *resources.Resource {
		return testResource(resources.Key{Type: resources.TypeMeshGateway, Mesh: "default", Name: of}, nil, map[string]any{
			"selectors": []any{map[string]any{"match": map[string]any{"kuma.io/service": "edge", "of": of}}},
			"conf":      map[string]any{"listeners": []any{map[string]any{"port": 8000 + n, "protocol": "HTTP"}}}})
	}
	put := func(r *resources.Resource) {
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
	}
	x := testProxies(s)
	for i := range edges {
		name := fmt.Sprintf("edge-%d", i)
		put(gateway(name, 0))
		put(testResource(dataplaneKey(name), nil, map[string]any{"networking": map[string]any{"address": "192.0.2.1",
			"gateway": map[string]any{"type": "BUILTIN", "tags": map[string]any{"kuma.io/service": "edge", "of": name}}}}))
		defer connect(x, name).end()
	}
	x.catchUp()
	states := func() map[*state]bool {
		out := map[*state]bool{}
		for _, p := range x.proxies {
			out[p.state.Load()] = true
		}
		return out
	}
	before, m := states(), x.meshes["default"]
	changed := gateway("edge-7", 1)
	put(changed)
	x.catchUp()
	visited := 0
	for p := range m.proxies {
		if !before[p.state.Load()] {
			if visited++; p.key.Name != "edge-7" {
				t.Errorf("a change of the MeshGateway of edge-7 builds %s", p.key.Name)
			}
		}
	}
	if visited != 1 {
		t.Errorf("a change of one gateway's builds %d proxies", visited)
	}
	for tags := range matching.SelectorsOf(changed) {
		if n := len(fewest(m.atGateway, tags)); n != 1 {
			t.Errorf("a MeshGateway of one proxy is held against %d", n)
		}
	}
	policy := testResource(resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "t"}, nil, map[string]any{
		"targetRef": map[string]any{"kind": "MeshGateway", "name": "edge-7"}, "to": []any{map[string]any{
			"targetRef": map[string]any{"kind": "Mesh"}, "default": map[string]any{"idleTimeout": "7s"}}}})
	put(policy)
	x.catchUp()
	if _, under := m.confs.Get(policy.Key); len(m.meeting[under]) != 1 {
		t.Errorf("a policy for the gateway of one proxy is held against %d", len(m.meeting[under]))
	}
}
