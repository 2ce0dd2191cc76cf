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

// TestRolloutWritesWhatChanged replaces 500 pods, and counts what the store is given. Each pod is written when it has an
// address, when it is ready, when it is to leave, and when it is gone: nothing else is written, and not its Service.
func TestRolloutWritesWhatChanged(t *testing.T) {
	const count = 500
	g := newRig(t)
	all := []*apiserver.Object{}
	for i := range count {
		all = append(all, pod(t, fmt.Sprintf("old-%d", i), address(i), true))
	}
	g.list(g.shop(all...))
	g.wrote("at first", 3, count+1)
	g.list(g.shop(all...))
	g.wrote("listed again", 0, 0)
	pods := g.of("pods")
	for i := range count {
		pods.Changed(pod(t, fmt.Sprintf("new-%d", i), "", false))
		pods.Changed(pod(t, fmt.Sprintf("old-%d", i), address(i), true, func(metadata m) { metadata["annotations"] = m{"a": "b"} }))
	}
	g.wrote("pods without an address", 0, 0)
	for i := range count {
		pods.Changed(pod(t, fmt.Sprintf("new-%d", i), address(count+i), false))
	}
	g.wrote("pods that begin", 2, count)
	for i := range count {
		pods.Changed(pod(t, fmt.Sprintf("new-%d", i), address(count+i), true))
		pods.Changed(pod(t, fmt.Sprintf("old-%d", i), address(i), true, leaving))
	}
	g.wrote("pods that are ready, and pods that leave", 4, 2*count)
	for i := range count {
		pods.Deleted(pod(t, fmt.Sprintf("old-%d", i), address(i), false, leaving))
	}
	g.wrote("pods that are gone", 2, count)
	g.of("nodes").Changed(node(t, "a"))
	g.wrote("a node's heartbeat", 0, 0)
	g.of("nodes").Changed(node(t, "b"))
	g.wrote("a node in another zone", 2, count)
}

func address(i int) string { return fmt.Sprintf("10.1.%d.%d", i/250, 1+i%250) }

// TestRestart restarts: what is the same is not written, what went meanwhile is removed, and not before all is listed.
func TestRestart(t *testing.T) {
	g := newRig(t)
	g.list(g.shop(pod(t, "a", "10.1.0.1", true), pod(t, "b", "10.1.0.2", true)))
	g.wrote("at first", 1, 3)
	g.restart()
	g.wrote("before a list", 0, 0)
	shop := g.shop(pod(t, "b", "10.1.0.2", true))
	for _, plural := range []string{"pods", "nodes", "namespaces"} {
		g.of(plural).Replace(shop[plural])
	}
	g.of("services").Failed(fmt.Errorf("forbidden"))
	g.wrote("while Services cannot be listed", 0, 0)
	g.of("services").Replace(shop["services"])
	g.wrote("after all lists", 1, 1)
	g.has("Dataplane default/shop/b", "MeshService default/shop/web")
	g.restart()
	g.list(map[string][]*apiserver.Object{})
	g.settled()
	g.has()
}

// TestUsersKeepTheirs: what a user wrote under the name of a pod or of a Service stays, until the user deletes it.
func TestUsersKeepTheirs(t *testing.T) {
	g := newRig(t)
	dataplane := home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Namespace: "shop", Name: "a"},
		Labels: map[string]string{resources.LabelManagedBy: resources.ManagedByDiscovery}, Object: resources.Object{UID: "u"},
		Spec: specOf(t, resources.TypeDataplane, `{"networking": {"address": "192.0.2.1", "inbound": [{"port": 1}]}}`)})
	service := home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "shop", Name: "web"},
		Object: resources.Object{UID: "v"}, Spec: specOf(t, resources.TypeMeshService, `{}`)})
	g.apply(store.Op{Put: dataplane}, store.Op{Put: service})
	g.list(g.shop(pod(t, "a", "10.1.0.1", true)))
	g.wrote("beside a user's", 0, 0)
	g.told("Service shop/web NameTaken", "Pod shop/a NameTaken")
	g.apply(store.Op{Delete: dataplane.Key}, store.Op{Delete: service.Key})
	g.wrote("after the user's are gone", 1, 2)
	g.has("Dataplane default/shop/a", "MeshService default/shop/web")
	g.apply(store.Op{Put: dataplane})
	g.of("pods").Deleted(pod(t, "a", "10.1.0.1", true))
	g.wrote("a user's that came later", 0, 0)
	g.has("Dataplane default/shop/a of a user", "MeshService default/shop/web")
}

func specOf(t testing.TB, of resources.Type, text string) *resources.Spec {
	t.Helper()
	spec, err := resources.NewSpec(of, []byte(text))
	must(t, err)
	return spec
}

// told compares the Events that wait to be written.
func (g *rig) told(want ...string) {
	g.t.Helper()
	got := []string{}
	for len(g.events) > 0 {
		e := <-g.events
		got = append(got, fmt.Sprintf("%s %s/%s %s", e.of.kind, e.of.namespace, e.of.name, e.Reason))
	}
	if !slices.Equal(got, want) {
		g.t.Errorf("told %q, want %q", got, want)
	}
}

// TestMeshComesLater: a pod waits for its mesh, and its author is told once.
func TestMeshComesLater(t *testing.T) {
	g := newRig(t)
	shop := g.shop(pod(t, "a", "10.1.0.1", true))
	shop["namespaces"] = []*apiserver.Object{namespace(t, m{"kuma.io/sidecar-injection": "enabled", "kuma.io/mesh": "second"})}
	raw := strings.Replace(string(shop["pods"][0].Raw), `{\"mesh\":\"default\"`, `{\"mesh\":\"second\"`, 1)
	var err error
	shop["pods"][0], err = apiserver.Parse([]byte(raw))
	must(t, err)
	g.list(shop)
	g.wrote("without the mesh", 0, 0)
	g.told("Service shop/web NoMesh", "Pod shop/a NoMesh")
	g.list(shop)
	g.settled()
	g.told()
	g.mesh("second")
	g.wrote("with the mesh", 1, 2)
	g.has("Dataplane second/shop/a", "MeshService second/shop/web")
	g.apply(store.Op{Delete: resources.Key{Type: resources.TypeMesh, Name: "second"}})
	g.wrote("the mesh is gone", 1, 2)
}

// TestNamespaceAgain deletes a namespace and makes it again at once: nothing of the first is left, nothing of the second
// is missing.
func TestNamespaceAgain(t *testing.T) {
	g := newRig(t)
	g.list(g.shop(pod(t, "a", "10.1.0.1", true), pod(t, "b", "10.1.0.2", true)))
	g.settled()
	g.of("pods").Deleted(pod(t, "a", "10.1.0.1", true))
	g.of("pods").Deleted(pod(t, "b", "10.1.0.2", true))
	g.of("services").Deleted(service(t, "web", m{"clusterIP": "10.2.0.1"}))
	g.of("namespaces").Deleted(namespace(t, asks))
	g.of("namespaces").Changed(namespace(t, asks))
	g.of("services").Changed(service(t, "web", m{"clusterIP": "10.2.0.9"}))
	g.of("pods").Changed(pod(t, "b", "10.1.0.3", false))
	g.wrote("the namespace again", 1, 3)
	g.has("Dataplane default/shop/b not ready", "MeshService default/shop/web")
	g.of("pods").Deleted(pod(t, "b", "10.1.0.3", false))
	g.of("services").Deleted(service(t, "web", m{}))
	g.of("namespaces").Deleted(namespace(t, asks))
	g.settled()
	g.has()
	if len(g.spaces) > 0 {
		t.Errorf("%d namespaces are still known", len(g.spaces))
	}
}

// TestHeadlessPods: each pod behind a headless Service has a MeshService, which follows the pod.
func TestHeadlessPods(t *testing.T) {
	g := newRig(t)
	shop := g.shop(pod(t, "web-0", "10.1.0.1", false))
	shop["services"] = []*apiserver.Object{service(t, "web", m{"clusterIP": "None"})}
	g.list(shop)
	g.wrote("at first", 1, 3)
	g.of("pods").Changed(pod(t, "web-0", "10.1.0.1", true))
	g.wrote("the pod is ready", 1, 1)
	g.of("pods").Changed(pod(t, "web-0", "10.1.0.2", true))
	g.wrote("the pod has another address", 1, 2)
	g.of("pods").Deleted(pod(t, "web-0", "10.1.0.2", true))
	g.wrote("the pod is gone", 1, 2)
	g.has("MeshService default/shop/web")
}

// TestOthersDelete: what somebody deletes from the store comes back.
func TestOthersDelete(t *testing.T) {
	g := newRig(t)
	g.list(g.shop(pod(t, "a", "10.1.0.1", true)))
	g.settled()
	g.apply(store.Op{Delete: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Namespace: "shop", Name: "a"}},
		store.Op{Delete: resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "shop", Name: "web"}})
	g.wrote("what was deleted", 1, 2)
}
