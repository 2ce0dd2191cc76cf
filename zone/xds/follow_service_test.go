package xds

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestAServiceIsComparedWithFewProxies: a change of a service is held against the proxies that follow it, by its name
// or its labels, and against those that it may select, not against all of the mesh.
func TestAServiceIsComparedWithFewProxies(t *testing.T) {
	t.Parallel()
	const proxies = 50
	s := store.NewMemory()
	put := func(r *resources.Resource) *resources.Resource {
		t.Helper()
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	service := func(name string, port int) *resources.Resource {
		key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: name}
		return testResource(key, map[string]string{"own": name},
			map[string]any{"selector": map[string]any{"dataplaneTags": map[string]any{"kuma.io/service": name}},
				"ports": []any{map[string]any{"port": port, "appProtocol": "http"}}})
	}
	x := testProxies(s)
	for i := range proxies {
		name, next := fmt.Sprintf("s%d", i), fmt.Sprintf("s%d", (i+1)%proxies)
		put(service(name, 80))
		ref := map[string]any{"kind": "MeshService", "name": next}
		if i%2 == 0 {
			ref = map[string]any{"kind": "MeshService", "labels": map[string]any{"own": next}}
		}
		put(testResource(dataplaneKey(name), nil, map[string]any{"networking": map[string]any{"address": "192.0.2.1",
			"inbound":  []any{map[string]any{"port": 80, "servicePort": 8080, "tags": map[string]any{"kuma.io/service": name}}},
			"outbound": []any{map[string]any{"port": 10001, "backendRef": ref}}}}))
		defer connect(x, name).end()
	}
	x.catchUp()
	m := x.meshes["default"]
	for i := range proxies {
		name, before := fmt.Sprintf("s%d", i), fmt.Sprintf("s%d", (i+proxies-1)%proxies)
		states := map[string]*state{}
		for p := range m.proxies {
			states[p.key.Name] = p.state.Load()
		}
		r := put(service(name, 81))
		held := 0
		for _, key := range referentOf(r).keys() {
			held += len(m.following[key])
		}
		if selected := len(fewest(m.meeting, matching.ServedBy(r))); held != 1 || selected != 1 {
			t.Errorf("%s is held against %d followers, and %d that it may select", name, held, selected)
		}
		x.catchUp()
		for p := range m.proxies {
			if changed := states[p.key.Name] != p.state.Load(); changed != (p.key.Name == name || p.key.Name == before) {
				t.Errorf("a change of %s builds %s: %v", name, p.key.Name, changed)
			}
		}
	}
}

// TestAProxyThatLeavesIsNotFollowedOn: nothing keeps a proxy whose streams have ended.
func TestAProxyThatLeavesIsNotFollowedOn(t *testing.T) {
	t.Parallel()
	c := newChanging(t, 1)
	m := c.x.meshes["default"]
	if len(m.following) == 0 {
		t.Fatal("nobody follows anything")
	}
	for _, session := range c.sessions {
		session.end()
	}
	if len(m.following)+len(m.meeting)+len(m.atGateway) > 0 {
		t.Errorf("kept: %v, %v, %v", m.following, m.meeting, m.atGateway)
	}
}
