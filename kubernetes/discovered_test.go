package kubernetes

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestDiscoveredIsNotForUsers writes and deletes, in each way, what the zone made of a pod and of a Service. A user's
// object under such a name waits until the pod is gone.
func TestDiscoveredIsNotForUsers(t *testing.T) {
	g := newRig(t)
	g.Routes.SetObjects(g.Bridge)
	made := map[resources.Type]string{
		resources.TypeDataplane:   `{"type": "Dataplane", "mesh": "default", "namespace": "shop", "name": "web", "networking": {"address": "192.0.2.1", "inbound": [{"port": 80}]}}`,
		resources.TypeMeshService: `{"type": "MeshService", "mesh": "default", "namespace": "shop", "name": "web", "spec": {"ports": [{"port": 80}]}}`,
		resources.TypeZoneIngress: `{"type": "ZoneIngress", "name": "web", "networking": {"address": "192.0.2.1", "port": 10001}}`,
	}
	for kind, text := range made {
		docs, err := resources.DecodeDocuments([]byte(text), resources.DecodeOptions{})
		must(t, err)
		own := g.Home.Labelled(docs[0])
		own.Labels[resources.LabelManagedBy], own.Labels[resources.LabelServiceName] = resources.ManagedByDiscovery, "web"
		_, err = g.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: own}}})
		must(t, err)
		users := docs[0].Clone()
		users.Object = resources.Object{UID: "u", Generation: 1}
		want := map[resources.Type]string{resources.TypeDataplane: "the zone makes the Dataplane shop/web of the Pod of its name",
			resources.TypeMeshService: "the zone makes the MeshService shop/web of the Service web",
			resources.TypeZoneIngress: "the zone makes the ZoneIngress web of the Pod of its name"}[kind]
		feed := func() error {
			result, err := g.Routes.Feed(t.Context(), api.Feed{Puts: []*resources.Resource{users}})
			must(t, err)
			return result.Refused[users.Key]
		}
		_, reviewed := g.Routes.Review(t.Context(), users, false)
		for where, err := range map[string]error{"feed": feed(), "webhook": reviewed} {
			if err == nil || !strings.Contains(explained(err), want) {
				t.Errorf("%s of %s: %v, want %s", where, kind, err, want)
			}
		}
		answer := httptest.NewRecorder()
		path := "/meshes/default/" + own.Descriptor().Path + "/web?namespace=shop"
		if own.Mesh == "" {
			path = "/" + own.Descriptor().Path + "/web"
		}
		g.Routes.ServeHTTP(answer, httptest.NewRequest(http.MethodDelete, path, nil))
		if answer.Code != http.StatusMethodNotAllowed || !strings.Contains(answer.Body.String(), "the zone makes this "+string(kind)) {
			t.Errorf("DELETE of %s: %d %s", kind, answer.Code, answer.Body)
		}
		if got := g.store.Snapshot().Get(own.Key); got == nil || !g.Home.Discovered(got) {
			t.Errorf("the store has %v", got)
		}
		_, err = g.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Delete: own.Key}}})
		must(t, err)
		if err := feed(); err != nil {
			t.Errorf("once it is gone: %v", err)
		}
	}
}
