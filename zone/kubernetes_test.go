package zone

import (
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// TestIdentitiesOfPodsToCome: other zones learn an identity that a MeshIdentity gives before the zone's authority for it
// signs, beside the one that a proxy has until then.
func TestIdentitiesOfPodsToCome(t *testing.T) {
	t.Parallel()
	home, memory := resources.Home{Zone: "zone-1"}, store.NewMemory()
	spec, err := resources.NewSpec(resources.TypeMeshIdentity, []byte(`{"selector":{"dataplane":{}},"provider":{"type":"Bundled"},`+
		`"spiffeID":{"trustDomain":"pay.zone-1.mesh.local"}}`))
	if err != nil {
		t.Fatal(err)
	}
	given := home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMeshIdentity, Mesh: "default", Name: "pay"}, Spec: spec})
	if _, err := memory.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: given}}}); err != nil {
		t.Fatal(err)
	}
	pod := home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Namespace: "shop", Name: "a"},
		Labels: map[string]string{resources.LabelServiceAccount: "web"}})
	authorities := identity.NewAuthorities(identity.Config{Keeper: secrets.NewKeeper(memory, testBox(t)), Store: memory, Zone: home.Zone})
	got := identitiesIn(memory, home, authorities, "default")(pod)
	want := []string{"spiffe://default.zone-1.mesh.local/ns/shop/sa/web", "spiffe://pay.zone-1.mesh.local/ns/shop/sa/web"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestInjectionIsChecked: a zone does not start with resources of proxies with which Kubernetes would refuse each new pod.
func TestInjectionIsChecked(t *testing.T) {
	t.Parallel()
	for amount, valid := range map[string]bool{"100m": true, "10 m": false} {
		for what, i := range map[string]Injection{"--injection-requests": {Requests: map[string]string{"cpu": amount}},
			"--injection-limits": {Limits: map[string]string{"cpu": amount}}} {
			i.Image, i.EnvoyImage, i.XDSAddress = "causeway-zone:1", "envoy:1", "zone.mesh.svc:5678"
			if err := i.validate(true); (err == nil) != valid || err != nil && !strings.Contains(err.Error(), what) {
				t.Errorf("%s cpu=%s: %v", what, amount, err)
			}
		}
	}
	if err := (&Injection{Requests: map[string]string{"cpu": "10 m"}}).validate(false); err != nil {
		t.Errorf("a zone that injects nothing: %v", err)
	}
}
