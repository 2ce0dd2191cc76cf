package xds

import (
	"fmt"
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
	route := c.chance(3)
	if route {
		key = resources.Key{Type: resources.TypeMeshHTTPRoute, Mesh: "default", Name: "of-" + of}
	}
	if c.chance(4) {
		c.apply(store.Op{Delete: key})
		return
	}
	if route {
		to := map[string]any{"kind": "MeshService", "name": c.one("backend", "plain"), "port": 80}
		c.put(key, nil, map[string]any{"targetRef": map[string]any{"kind": "MeshGateway", "name": of}, "to": []any{
			map[string]any{"targetRef": map[string]any{"kind": "Mesh"}, "rules": []any{map[string]any{
				"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": c.one("/", "/a")}}},
				"default": map[string]any{"backendRefs": []any{to}}}}}}})
		return
	}
	selectors := []any{map[string]any{"match": c.one(
		map[string]any{"kuma.io/service": "edge"}, map[string]any{"kuma.io/service": "edge", "of": c.one("a", "b")},
		map[string]any{"of": "*", "kuma.io/zone": testHome.Zone}, map[string]any{"of": "c"})}}
	if c.chance(3) {
		selectors = append(selectors, map[string]any{"match": map[string]any{"of": c.one("a", "b")}})
	}
	c.put(key, nil, map[string]any{"selectors": selectors, "conf": map[string]any{"listeners": []any{
		map[string]any{"port": c.one(8080, 8081), "protocol": "HTTP", "hostname": c.one("*", "a.example")}}}})
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
