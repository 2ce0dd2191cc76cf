package xds

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestServicesOfOneZoneAreLookedUpOnce: what a zone's services behind one MeshMultiZoneService cost is not each of its
// ingresses and trust domains for each of them: a zone can put thousands there. Allocations are counted, so it is not
// in parallel with others.
func TestServicesOfOneZoneAreLookedUpOnce(t *testing.T) {
	const few, many = 10, 500
	cost := func(services int) float64 {
		s := store.NewMemoryWith(store.ViewConfig{WindowCommits: 8})
		var batch store.Batch
		put := func(typ resources.Type, mesh, name, zone string, spec map[string]any) {
			r := testResource(resources.Key{Type: typ, Mesh: mesh, Name: name}, nil, spec)
			r.Labels["tier"] = "all"
			if zone != "" {
				r.Labels[resources.LabelZone] = zone
			}
			batch.Ops = append(batch.Ops, store.Op{Put: r})
		}
		for i := range services {
			put(resources.TypeMeshService, "default", fmt.Sprint("s-", i), "zone-2",
				map[string]any{"ports": []any{map[string]any{"port": 80, "appProtocol": "http"}}})
		}
		for i := range 50 {
			put(resources.TypeZoneIngress, "", fmt.Sprint("in-", i), "zone-2",
				map[string]any{"networking": map[string]any{"address": fmt.Sprint("192.0.2.", i+1), "port": 10001}})
			put(resources.TypeMeshTrust, "default", fmt.Sprint("t-", i), "zone-2",
				map[string]any{"trustDomain": fmt.Sprintf("t%d.zone-2.mesh.local", i)})
		}
		put(resources.TypeMeshMultiZoneService, "default", "many", "", map[string]any{
			"selector": map[string]any{"meshService": map[string]any{"matchLabels": map[string]any{"tier": "all"}}},
			"ports":    []any{map[string]any{"port": 80, "appProtocol": "http"}},
		})
		put(resources.TypeDataplane, "default", "a", "zone-1", map[string]any{"networking": map[string]any{
			"address": "192.0.2.99", "inbound": []any{map[string]any{"port": 80}},
			"outbound": []any{map[string]any{"port": 10000, "backendRef": map[string]any{"kind": "MeshMultiZoneService",
				"name": "many", "port": 80}}},
		}})
		if _, err := s.Apply(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		x := testProxies(s)
		defer connect(x, "a").end()
		n := x.network
		for _, port := range n.ports {
			if len(port.services) != services {
				t.Fatalf("%d services are behind the port, want %d", len(port.services), services)
			}
			return testing.AllocsPerRun(3, func() {
				if _, err := n.endpoints(port); err != nil {
					t.Error(err)
				}
				if _, err := n.identities(port, &trust{}); err != nil {
					t.Error(err)
				}
			})
		}
		t.Fatal("nobody sends to the service")
		return 0
	}
	a, b := cost(few), cost(many)
	if b > 3*a {
		t.Errorf("%d services cost %v allocations, %d cost %v", few, a, many, b)
	}
	t.Logf("%d services cost %v allocations, %d cost %v", few, a, many, b)
}
