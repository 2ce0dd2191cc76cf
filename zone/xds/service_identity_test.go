package xds

import (
	"maps"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestServiceOfKubernetesIsItsDataplanes: what a zone made of a Service of Kubernetes names identities for other zones.
// In the zone itself those of the Dataplanes count, which are known sooner; of a user's service those that it names.
func TestServiceOfKubernetesIsItsDataplanes(t *testing.T) {
	t.Parallel()
	named := "spiffe://" + resources.ZoneTrustDomain("default", testHome.Zone) + "/ns/shop/sa/before"
	labels := map[string]string{resources.LabelManagedBy: resources.ManagedByDiscovery}
	service := testResource(resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "shop", Name: "web"}, labels,
		map[string]any{"selector": map[string]any{"dataplaneLabels": map[string]any{"matchLabels": map[string]string{"app": "web"}}},
			"ports":      []any{map[string]any{"port": 80}},
			"identities": []any{map[string]any{"type": "SpiffeID", "value": named}}})
	pod := testResource(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Namespace: "shop", Name: "web-0"},
		map[string]string{"app": "web", resources.LabelServiceAccount: "now"},
		map[string]any{"networking": map[string]any{"address": "192.0.2.1", "inbound": []any{map[string]any{"port": 80}}}})
	users := service.Clone()
	users.Object = resources.Object{UID: "u"}
	for what, of := range map[string]struct {
		service *resources.Resource
		want    string
	}{
		"a Service of Kubernetes": {service, "spiffe://" + resources.ZoneTrustDomain("default", testHome.Zone) + "/ns/shop/sa/now"},
		"a user's":                {users, named},
	} {
		mem := store.NewMemory()
		if _, err := mem.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: pod}, {Put: of.service}}}); err != nil {
			t.Fatal(err)
		}
		n, exact := testProxies(mem).network, map[string]bool{}
		n.addIdentities(of.service, n.assignments("default"), exact)
		if got := slices.Sorted(maps.Keys(exact)); !slices.Equal(got, []string{of.want}) {
			t.Errorf("%s: %q, want %s", what, got, of.want)
		}
	}
}
