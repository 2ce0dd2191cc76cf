package discovery

import (
	"slices"
	"testing"

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

// account gives a pod a service account.
func account(name string) func(metadata m) {
	return func(metadata m) { metadata["account"] = name }
}
