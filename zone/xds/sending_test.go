package xds

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// drawnNetwork draws changes to whatever may shape what a proxy sends.
type drawnNetwork struct {
	store *store.Memory
	x     *Proxies
}

func (d *drawnNetwork) apply(t *rapid.T, op store.Op) {
	if _, err := d.store.Apply(context.Background(), store.Batch{Ops: []store.Op{op}}); err != nil {
		t.Fatal(err)
	}
}

// put writes a resource of the mesh, or removes it one time in five.
func (d *drawnNetwork) put(t *rapid.T, kind resources.Type, name string, labels map[string]string,
	spec map[string]any) {
	key := resources.Key{Type: kind, Mesh: "default", Name: name}
	if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
		d.apply(t, store.Op{Delete: key})
		return
	}
	d.apply(t, store.Op{Put: testResource(key, labels, spec)})
}

var (
	drawnNames    = rapid.SampledFrom([]string{"a", "b", "c"})
	drawnServices = rapid.SampledFrom([]string{"s", "t", "u"})
	drawnColours  = rapid.SampledFrom([]string{"red", "blue"})
)

func drawnRef(t *rapid.T) map[string]any {
	switch rapid.IntRange(0, 3).Draw(t, "ref") {
	case 0:
		return map[string]any{"kind": "MeshMultiZoneService", "name": "many", "port": 80}
	case 1:
		return map[string]any{"kind": "MeshService", "labels": map[string]any{"tier": drawnColours.Draw(t, "tier")}}
	}
	return map[string]any{"kind": "MeshService", "name": drawnServices.Draw(t, "service")}
}

func drawnTags(t *rapid.T) map[string]any {
	out := map[string]any{"kuma.io/service": drawnServices.Draw(t, "service tag")}
	if rapid.Bool().Draw(t, "version") {
		out["version"] = drawnColours.Draw(t, "version tag")
	}
	return out
}

func (d *drawnNetwork) dataplane(t *rapid.T) {
	inbound := map[string]any{"name": "main", "port": 80, "servicePort": 8080, "tags": drawnTags(t)}
	if rapid.Bool().Draw(t, "declared") {
		inbound["protocol"] = "http"
	}
	if rapid.Bool().Draw(t, "unready") {
		inbound["state"] = "NotReady"
	}
	var outbounds []any
	for i := range rapid.IntRange(0, 2).Draw(t, "outbounds") {
		out := map[string]any{"port": 10000 + i}
		if rapid.Bool().Draw(t, "by tags") {
			out["tags"] = drawnTags(t)
		} else {
			out["backendRef"] = drawnRef(t)
		}
		outbounds = append(outbounds, out)
	}
	name := drawnNames.Draw(t, "name")
	d.put(t, resources.TypeDataplane, name, map[string]string{"colour": drawnColours.Draw(t, "colour")},
		map[string]any{"networking": map[string]any{
			"address": "192.0.2." + map[string]string{"a": "1", "b": "2", "c": "3"}[name], "inbound": []any{inbound},
			"outbound": outbounds,
		}})
}

func (d *drawnNetwork) service(t *rapid.T) {
	labels := map[string]string{"tier": drawnColours.Draw(t, "tier")}
	if rapid.Bool().Draw(t, "foreign") {
		labels[resources.LabelZone] = "zone-2"
	}
	name := drawnServices.Draw(t, "service")
	key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: name}
	selector := map[string]any{"dataplaneLabels": map[string]any{"matchLabels": map[string]any{"colour": drawnColours.Draw(t, "colour")}}}
	if rapid.Bool().Draw(t, "selects tags") {
		selector = map[string]any{"dataplaneTags": drawnTags(t)}
	}
	r := testResource(key, nil, map[string]any{
		"selector": selector,
		"ports": []any{map[string]any{"port": 80, "targetPort": "main",
			"appProtocol": rapid.SampledFrom([]string{"http", "grpc", "tcp"}).Draw(t, "protocol")}},
	})
	for k, v := range labels {
		r.Labels[k] = v
	}
	if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
		d.apply(t, store.Op{Delete: key})
		return
	}
	d.apply(t, store.Op{Put: r})
}

func (d *drawnNetwork) multiZoneService(t *rapid.T) {
	d.put(t, resources.TypeMeshMultiZoneService, "many", nil, map[string]any{
		"selector": map[string]any{"meshService": map[string]any{"matchLabels": map[string]any{"tier": drawnColours.Draw(t, "tier")}}},
		"ports":    []any{map[string]any{"port": 80, "appProtocol": "http"}},
	})
}

func (d *drawnNetwork) policy(t *rapid.T) {
	spec := map[string]any{}
	if rapid.Bool().Draw(t, "narrow") {
		spec["targetRef"] = map[string]any{"kind": "Dataplane",
			"labels": map[string]any{"colour": drawnColours.Draw(t, "colour")}}
	}
	name := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "policy")
	if rapid.Bool().Draw(t, "route") {
		spec["to"] = []any{map[string]any{"targetRef": drawnRef(t), "rules": []any{map[string]any{
			"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/v2"}}},
			"default": map[string]any{"backendRefs": []any{drawnRef(t)}},
		}}}}
		d.put(t, resources.TypeMeshHTTPRoute, name, nil, spec)
		return
	}
	ref := drawnRef(t)
	if rapid.Bool().Draw(t, "of a route") {
		ref = map[string]any{"kind": "MeshHTTPRoute", "name": name}
	}
	timeout := fmt.Sprintf("%ds", rapid.IntRange(1, 3).Draw(t, "timeout"))
	spec["to"] = []any{map[string]any{"targetRef": ref, "default": map[string]any{"connectionTimeout": timeout,
		"http": map[string]any{"requestTimeout": timeout}}}}
	d.put(t, resources.TypeMeshTimeout, name, nil, spec)
}

func (d *drawnNetwork) ingress(t *rapid.T) {
	zone := rapid.SampledFrom([]string{"zone-1", "zone-2"}).Draw(t, "zone")
	key := resources.Key{Type: resources.TypeZoneIngress, Name: "of-" + zone}
	if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
		d.apply(t, store.Op{Delete: key})
		return
	}
	spec := map[string]any{"networking": map[string]any{"address": "192.0.2.9", "port": rapid.IntRange(1, 3).Draw(t, "port")}}
	if rapid.Bool().Draw(t, "lists") {
		spec["availableServices"] = []any{map[string]any{"mesh": "default", "tags": drawnTags(t)}}
	}
	r := testResource(key, nil, spec)
	r.Labels[resources.LabelZone] = zone
	d.apply(t, store.Op{Put: r})
}

// connectKey is a stream of a Dataplane's proxy, or of an ingress's for the name "ingress".
func connectKey(x *Proxies, name string) *session {
	if name != "ingress" {
		return connect(x, name)
	}
	s := newSession(x)
	node := testNode("x")
	node.Id = NodeID("", "of-zone-1")
	if err := s.identify(node); err != nil {
		panic(err)
	}
	return s
}

// TestChangesOfTheNetworkLeadWhereABuildFromScratchDoes: whatever happens to services, Dataplanes, ingresses, routes
// and policies, each connected proxy has what it would get from a server that starts now.
func TestChangesOfTheNetworkLeadWhereABuildFromScratchDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := &drawnNetwork{store: store.NewMemoryWith(store.ViewConfig{WindowCommits: 8})}
		d.x = testProxies(d.store)
		sessions := map[string]*session{}
		connected := rapid.SampledFrom([]string{"a", "b", "c", "ingress"})
		t.Repeat(map[string]func(*rapid.T){
			"dataplane": d.dataplane, "service": d.service, "multi-zone service": d.multiZoneService,
			"policy": d.policy, "ingress": d.ingress,
			"connect": func(t *rapid.T) {
				if name := connected.Draw(t, "name"); sessions[name] == nil {
					sessions[name] = connectKey(d.x, name)
				}
			},
			"disconnect": func(t *rapid.T) {
				name := connected.Draw(t, "name")
				if sessions[name] != nil {
					sessions[name].end()
					delete(sessions, name)
				}
			},
			"": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "behind") {
					return
				}
				d.x.catchUp()
				d.check(t, sessions)
			},
		})
		for _, s := range sessions {
			s.end()
		}
		if n := d.x.network; len(n.ports)+len(n.decoded)+len(n.dirtyPorts)+len(n.dirtyProxies)+len(n.meanings)+len(n.doubted) > 0 {
			t.Errorf("left behind: %d ports, %d decoded Dataplanes, %d and %d dirty, %d meanings and %d doubts", len(n.ports),
				len(n.decoded), len(n.dirtyPorts), len(n.dirtyProxies), len(n.meanings), len(n.doubted))
		}
	})
}

func (d *drawnNetwork) check(t *rapid.T, sessions map[string]*session) {
	d.x.expirePresence(time.Now().Add(retireFor))
	fresh := testProxies(d.store)
	fresh.presence.absent = d.x.presence.absent // which no store says
	for name, s := range sessions {
		again := connectKey(fresh, name)
		have, want := s.proxy.state.Load(), again.proxy.state.Load()
		for k := range kinds {
			var a, b set
			if have != nil {
				a = have.sets[k]
			}
			if want != nil {
				b = want.sets[k]
			}
			if !a.equal(b) {
				t.Fatalf("%s: %s differs from a build from scratch:\nhave %v\nwant %v", name, k, texts(a), texts(b))
			}
		}
	}
}

func texts(s set) (out []string) {
	for _, r := range s {
		out = append(out, r.name+" "+r.version+" "+r.delta.String()[:min(len(r.delta.String()), 300)])
	}
	return out
}
