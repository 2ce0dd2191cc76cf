package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// TestNamespacesAreBounded checks that the owner of one namespace cannot grow what all share without limit. A namespace
// over the limit refuses only additions, and others are not affected.
func TestNamespacesAreBounded(t *testing.T) {
	f := serveConfig(t, api.Config{Home: resources.Home{Zone: "zone-1", Alone: true},
		NamespaceLimits: api.NamespaceLimits{ServicePorts: 4, Dataplanes: 2}})
	service := func(namespace, name string, ports int) string {
		var list []string
		for i := range ports {
			list = append(list, fmt.Sprintf("{port: %d}", 80+i))
		}
		return fmt.Sprintf("type: MeshService\nmesh: default\nnamespace: %s\nname: %s\nspec: {ports: [%s]}\n", namespace, name,
			strings.Join(list, ", "))
	}
	dataplane := func(namespace, name string) string {
		return fmt.Sprintf("type: Dataplane\nmesh: default\nnamespace: %s\nname: %s\nnetworking: {address: 192.0.2.1, inbound: [{port: 80}]}\n", namespace, name)
	}
	const system = resources.DefaultSystemNamespace
	f.mustCall(t, "POST", "/_batch", service("old", "large", 3)) // then over the limit, as before limits
	write(t, f.store, resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "old", Name: "large"},
		map[string]string{resources.LabelOrigin: resources.OriginZone, resources.LabelZone: "zone-1"},
		`{"ports": [{"port": 1}, {"port": 2}, {"port": 3}, {"port": 4}, {"port": 5}, {"port": 6}]}`)
	for _, step := range []struct{ body, refused string }{
		{service("a", "one", 2) + "---\n" + service("a", "two", 2), ""},
		{service("a", "one", 2), ""}, // nothing new
		{service("a", "three", 1), "the namespace a of the mesh default would have 5 ports of MeshServices, want at most 4"},
		{service("a", "none", 0), "would have 5 ports of MeshServices"},
		{service("a", "two", 3), "would have 5 ports of MeshServices"},
		{service("b", "one", 4), ""}, // another namespace
		{service(system, "one", 9), ""},
		{service("a", "two", 1) + "---\n" + service("a", "three", 1), ""}, // one frees room for the other
		{service("c", "one", 3) + "---\n" + service("c", "two", 3), "would have 6 ports of MeshServices"},
		{service("old", "large", 5), ""},
		{strings.Replace(service("d", "one", 2), "{ports:", fmt.Sprintf("{identities: [{type: SpiffeID, value: %q}], ports:",
			"spiffe://default.zone-1.mesh.local/ns/d/"+strings.Repeat("a", 4<<10)), 1), ""},
		{strings.Replace(service("e", "one", 2), "{ports:", fmt.Sprintf("{identities: [{type: SpiffeID, value: %q}], ports:",
			"spiffe://default.zone-1.mesh.local/ns/e/"+strings.Repeat("a", 6<<10)), 1), "would have 5 ports"},
		{service("old", "large", 6), "would have 6 ports"},
		{dataplane("a", "one") + "---\n" + dataplane("a", "two"), ""},
		{dataplane("a", "three"), "would have 3 Dataplanes, want at most 2"},
		{dataplane(system, "one") + "---\n" + dataplane(system, "two") + "---\n" + dataplane(system, "three"), ""},
	} {
		before := f.store.Snapshot().Revision()
		_, err := f.call(t, "POST", "/_batch", step.body)
		switch {
		case step.refused == "" && err != nil:
			t.Errorf("%s: %v", step.body, err)
		case step.refused != "" && (err == nil || !strings.Contains(fmt.Sprint(err.InvalidParameters), step.refused)):
			t.Errorf("%s: want %q, got %+v", step.body, step.refused, err)
		case step.refused != "" && f.store.Snapshot().Revision() != before:
			t.Errorf("%s: something was stored", step.body)
		}
	}
}
