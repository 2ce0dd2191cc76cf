package xds

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// tagsAre are a zone's proxies and the caller among them, whose outbounds name tags: testdata/network/tagged.yaml.
type tagsAre struct {
	*testing.T
	store *store.Memory
	x     *Proxies
	proxy *proxy
}

func newTagsAre(t *testing.T) *tagsAre {
	t.Helper()
	s := storeOf(t, filepath.Join("testdata", "network", "tagged.yaml"))
	return &tagsAre{T: t, store: s, x: testProxies(s)}
}

func (w *tagsAre) connect() {
	w.Helper()
	session := newSession(w.x)
	w.Cleanup(session.end)
	if err := session.identify(testNode("caller")); err != nil {
		w.Fatal(err)
	}
	w.proxy = session.proxy
}

// put stores a resource of the zone.
func (w *tagsAre) put(typ resources.Type, name, spec string) {
	w.Helper()
	var of map[string]any
	if err := yaml.Unmarshal([]byte(spec), &of); err != nil {
		w.Fatal(err)
	}
	r := testResource(resources.Key{Type: typ, Mesh: "default", Name: name}, nil, of)
	if _, err := w.store.Apply(w.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
		w.Fatal(err)
	}
	w.x.catchUp()
}

// has reports whether a resource of the caller for the tags contains a text.
func (w *tagsAre) has(k kind, tags, text string) bool {
	w.Helper()
	all := w.proxy.state.Load().sending.sets[k]
	at := slices.IndexFunc(all, func(r *resource) bool { return strings.HasPrefix(r.name, "tags_default__["+tags+"]") })
	if at < 0 {
		w.Fatalf("the caller has no %s for %s", k, tags)
	}
	return strings.Contains(string(asYAML(w.T, all[at])), text)
}

// TestTagsFollowPorts: a policy for a port of the MeshService of the same Dataplanes holds once the port has the name,
// and no longer than it is the only one.
func TestTagsFollowPorts(t *testing.T) {
	t.Parallel()
	w := newTagsAre(t)
	w.connect()
	w.put(resources.TypeMeshTimeout, "of-port",
		`{to: [{targetRef: {kind: MeshService, name: shop, sectionName: web}, default: {connectionTimeout: 9s}}]}`)
	const service = `{selector: {dataplaneTags: {kuma.io/service: backend}}, ports: [`
	for _, c := range []struct {
		ports string
		want  bool
	}{
		{`{port: 80, targetPort: 80, appProtocol: http}`, false},
		{`{name: web, port: 80, targetPort: 80, appProtocol: http}`, true},
		{`{name: web, port: 80, targetPort: 80, appProtocol: http}, {name: more, port: 81, targetPort: 80, appProtocol: http}`, false},
	} {
		w.put(resources.TypeMeshService, "shop", service+c.ports+`]}`)
		if got := w.has(kindCluster, "kuma.io/service=backend", "connect_timeout: 9s"); got != c.want {
			t.Errorf("ports %s: the limit holds: %t", c.ports, got)
		}
	}
}

// TestTagsOfManyZones: what a policy says of other zones holds for an outbound by tags, which may lead to several.
func TestTagsOfManyZones(t *testing.T) {
	t.Parallel()
	w := newTagsAre(t)
	w.connect()
	const near, far = "address: 192.0.2.2", "address: 198.51.100.2"
	if !w.has(kindEndpoint, "kuma.io/service=backend", far) {
		t.Fatal("no other zone has the tags")
	}
	w.put(resources.TypeMeshLoadBalancingStrategy, "here",
		`{to: [{targetRef: {kind: Mesh}, default: {localityAwareness: {localZone: {}}}}]}`)
	if !w.has(kindEndpoint, "kuma.io/service=backend", near) || w.has(kindEndpoint, "kuma.io/service=backend", far) {
		t.Error("other zones are asked although the policy is for the own zone alone")
	}
}

// TestTagsAfterAFailure: what tags mean is found out again for a proxy whose first config could not be built.
func TestTagsAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newTagsAre(t)
	w.put(resources.TypeMeshExternalService, "queue", `{match: {port: 9092}, endpoints: [{address: 192.0.2.10, port: 9092}]}`)
	w.put(resources.TypeDataplane, "caller", `{networking: {address: 192.0.2.1, outbound: [
  {port: 10003, tags: {kuma.io/service: nobody}}, {port: 10004, backendRef: {kind: MeshExternalService, name: queue, port: 9092}}]}}`)
	w.x.cfg.Panics = panics.New(slog.New(slog.DiscardHandler))
	broken := true
	w.x.cfg.Own = func(address string, _ uint32) bool {
		if broken && address == "192.0.2.10" {
			panic("the test's")
		}
		return false
	}
	w.connect()
	if w.proxy.state.Load() != nil {
		t.Fatal("the first config was built")
	}
	w.put(resources.TypeDataplane, "somebody", `{networking: {address: 192.0.2.4, inbound: [
  {port: 80, servicePort: 8080, protocol: http, tags: {kuma.io/service: nobody}}]}}`)
	broken = false
	w.put(resources.TypeMeshTimeout, "any", `{to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 3s}}]}`)
	if w.proxy.state.Load() == nil {
		t.Fatalf("it has no config: %s", w.proxy.unbuilt.String())
	}
	if !w.has(kindEndpoint, "kuma.io/service=nobody", "address: 192.0.2.4") {
		t.Errorf("the Dataplane that carries the tags by now is no endpoint; problems %v", w.proxy.record.problems)
	}
}
