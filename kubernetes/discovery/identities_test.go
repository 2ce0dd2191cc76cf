package discovery

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestIdentitiesOfServices: a MeshService names who answers for it, a pod from before it has an address until it is gone,
// and nobody beside the pods behind the Service. Other zones would accept each workload of this one instead.
func TestIdentitiesOfServices(t *testing.T) {
	g := newRig(t)
	domain := resources.ZoneTrustDomain("default", "zone-1")
	g.Identities = func(string) func(*resources.Resource) []string {
		return func(dp *resources.Resource) []string {
			return []string{"spiffe://" + domain + "/ns/" + dp.HomeNamespace() + "/sa/" + dp.Labels[resources.LabelServiceAccount]}
		}
	}
	of := func(account string) string { return "spiffe://" + domain + "/ns/shop/sa/" + account }
	names := func(when string, changes int, want ...string) {
		t.Helper()
		g.wrote(when, 1, changes)
		key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "shop", Name: "web"}
		spec, err := resources.SpecAs[resources.MeshService](g.store.Snapshot().Get(key))
		must(t, err)
		got := []string{}
		for _, id := range spec.Identities {
			got = append(got, id.Value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	shop := g.shop()
	g.list(shop)
	names("without a pod", 1)
	pods := g.of("pods")
	pods.Changed(pod(t, "a", "", false))
	names("a pod without an address", 1, of("default"))
	pods.Changed(pod(t, "a", "10.1.0.1", true))
	names("the pod is ready", 1, of("default"))
	pods.Changed(pod(t, "other", "10.1.0.8", true, func(metadata m) { metadata["labels"] = m{"app": "other"} }, account("other")))
	names("a pod of another Service", 1, of("default"))
	pods.Changed(pod(t, "b", "", false, account("payments")))
	names("a pod of another account", 1, of("default"), of("payments"))
	pods.Deleted(pod(t, "a", "10.1.0.1", true))
	names("the first pod is gone", 2, of("payments"))
	pods.Changed(pod(t, "b", "", false, account("payments"), func(metadata m) { metadata["labels"] = m{"app": "other"} }))
	names("the Service has no pod", 0, of("payments"))
	g.apply(store.Op{Put: home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default",
		Namespace: "shop", Name: "machine"}, Labels: map[string]string{"app": "web", resources.LabelServiceAccount: "machine"},
		Object: resources.Object{UID: "u"},
		Spec:   specOf(t, resources.TypeDataplane, `{"networking": {"address": "192.0.2.1", "inbound": [{"port": 80}]}}`)})})
	names("a Dataplane of a user", 1, of("machine"))
	g.apply(store.Op{Delete: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Namespace: "shop", Name: "machine"}})
	pods.Changed(pod(t, "b", "", false, account("payments")))
	names("the pod is back", 1, of("payments"))

	domain = "payments.zone-1.mesh.local"
	identity := resources.Key{Type: resources.TypeMeshIdentity, Mesh: "default", Name: "payments"}
	g.apply(store.Op{Put: home.Labelled(&resources.Resource{Key: identity, Spec: specOf(t, resources.TypeMeshIdentity, `{}`)})})
	names("with a MeshIdentity", 1, of("payments"))
	domain = "default.zone-2.mesh.local"
	g.apply(store.Op{Delete: identity})
	names("identities that no service here may name", 1)
}

// TestTooManyIdentities: other zones accept more than the pods of a Service where a MeshService cannot name them all, and the
// Service's owner is told.
func TestTooManyIdentities(t *testing.T) {
	for what, row := range map[string]struct {
		ports, identities int
		told              bool
	}{
		"as many as fit": {128, 128, false}, "too long for the ports": {128, 129, true},
		"as many as a MeshService has": {1, resources.MaxServiceIdentities, false}, "one more": {1, resources.MaxServiceIdentities + 1, true},
	} {
		t.Run(what, func(t *testing.T) {
			g := newRig(t)
			g.Identities = func(string) func(*resources.Resource) []string {
				return func(*resources.Resource) (all []string) {
					for i := range row.identities {
						all = append(all, fmt.Sprintf("spiffe://%s/ns/shop/sa/%05d", resources.ZoneTrustDomain("default", "zone-1"), i))
						all[i] += strings.Repeat("x", 64-len(all[i]))
					}
					return all
				}
			}
			ports := []any{}
			for i := range row.ports {
				ports = append(ports, m{"name": fmt.Sprint("p", i), "port": 1000 + i})
			}
			shop := g.shop(pod(t, "a", "10.1.0.1", true))
			shop["services"] = []*apiserver.Object{service(t, "web", m{"ports": ports})}
			g.list(shop)
			g.settled()
			if row.told {
				g.told("Service shop/web TooManyIdentities")
			} else {
				g.told()
			}
			key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "shop", Name: "web"}
			spec, err := resources.SpecAs[resources.MeshService](g.store.Snapshot().Get(key))
			must(t, err)
			if named := len(spec.Identities); named != map[bool]int{false: row.identities}[row.told] {
				t.Errorf("the MeshService names %d identities", named)
			}
		})
	}
}

// account gives a pod a service account.
func account(name string) func(metadata m) {
	return func(metadata m) { metadata["account"] = name }
}
