package xds

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// changing is a zone whose resources change at random.
type changing struct {
	t        *testing.T
	dice     *rand.Rand
	store    *store.Memory
	x        *Proxies
	sessions map[string]*session
	// lists holds lists of confs as policies of a type may have them.
	lists map[resources.Type][]list
	types []resources.Type
	drawn int    // policies
	pair  []byte // a certificate with its key
	// gateways means that every other change is of a MeshGateway or a route of one.
	gateways bool
	// held are operations that one batch is going to have.
	held []store.Op
}

// list is one of the lists of a policy, `to`, `from` or `rules`, or its `default`.
type list struct {
	name  string
	items any
}

// changedProxies are the proxies of a changing zone. The first three are replicas in all but their addresses. Then come
// two gateways and two egresses.
var changedProxies = []string{"caller", "caller-2", "caller-3", "backend-1", "tcp", "grpc", "edge-1", "edge-2", "egress-1", "egress-2"}

func newChanging(t *testing.T, seed uint64) *changing {
	t.Helper()
	c := &changing{t: t, dice: rand.New(rand.NewPCG(seed, 2)), sessions: map[string]*session{}, lists: listsOfAll(t),
		store: storeOf(t, filepath.Join("testdata", "enforced", "mesh.yaml"))}
	c.types, c.pair = slices.Sorted(maps.Keys(c.lists)), pair(t)
	for _, name := range changedProxies {
		if name != "caller" && name != "backend-1" {
			c.dataplane(name)
		}
	}
	c.external("out")
	c.external("out-2")
	c.trusts("always")
	c.x = pinned(c.store)
	for _, name := range changedProxies {
		c.sessions[name] = connectWhole(t, c.x, name)
	}
	return c
}

// external writes a service outside the mesh anew, or removes it.
func (c *changing) external(name string) {
	key := resources.Key{Type: resources.TypeMeshExternalService, Mesh: "default", Name: name}
	if c.chance(8) {
		c.apply(store.Op{Delete: key})
		return
	}
	spec := map[string]any{
		"match":     map[string]any{"type": "HostnameGenerator", "port": c.one(80, 80, 81), "protocol": c.one("http", "http", "tcp", "grpc")},
		"endpoints": []any{map[string]any{"address": c.one("192.0.2.200", "out.example"), "port": 8080 + c.dice.IntN(3)}}}
	if c.chance(4) {
		spec["tls"] = map[string]any{"enabled": true, "verification": map[string]any{"mode": "SkipAll",
			"clientCert": map[string]any{"inlineString": c.one("none", "neither")}, "clientKey": map[string]any{"secret": "of-none"}}}
	}
	c.put(key, nil, spec)
}

// connectWhole opens a stream of a proxy that can do all that policies ask for.
func connectWhole(t testing.TB, x *Proxies, name string) *session {
	t.Helper()
	s := newSession(x)
	node := testNode(name)
	admin := 9901.0
	if name == "caller-2" { // otherwise a replica of caller
		admin = 9903
	}
	node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{AdminKey: structpb.NewNumberValue(admin),
		PushKey: structpb.NewBoolValue(true)}}
	if name == "grpc" {
		node.UserAgentName = "gRPC Go"
	}
	if err := s.identify(node); err != nil {
		t.Fatal(err)
	}
	return s
}

// listsOfAll reads the confs that other tests hold against what proxies get.
func listsOfAll(t *testing.T) map[resources.Type][]list {
	t.Helper()
	read := func(name string, into any) {
		raw, err := os.ReadFile(filepath.Join("testdata", "enforced", name))
		if err == nil {
			err = yaml.Unmarshal(raw, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out := map[resources.Type][]list{}
	usual := map[resources.Type]map[string]any{}
	read("confs.yaml", &usual)
	for typ, lists := range usual {
		for name, items := range lists {
			out[typ] = append(out[typ], list{name, items})
		}
	}
	fields, received := map[resources.Type]any{}, map[resources.Type]any{}
	read("fields.yaml", &fields)
	for typ, items := range fields {
		out[typ] = append(out[typ], list{"to", items})
	}
	read("received.yaml", &received)
	for typ, items := range received {
		out[typ] = append(out[typ], list{"rules", items})
	}
	whole := map[resources.Type][]any{}
	read("whole.yaml", &whole)
	everywhere := map[string]any{"kind": "Mesh"}
	for typ, confs := range whole {
		d, _ := resources.Lookup(typ)
		for _, conf := range confs {
			if d.Policy.Single {
				out[typ] = append(out[typ], list{"default", conf})
			}
			if d.Policy.Rules {
				out[typ] = append(out[typ], list{"rules", []any{map[string]any{"default": conf}}})
			}
			if d.Policy.To {
				out[typ] = append(out[typ], list{"to", []any{map[string]any{"targetRef": everywhere, "default": conf}}})
			}
		}
	}
	addNear(out)
	for _, lists := range out {
		slices.SortStableFunc(lists, func(a, b list) int { return bytes.Compare(textOfList(a), textOfList(b)) })
	}
	return out
}

func textOfList(l list) []byte {
	raw, _ := json.Marshal([]any{l.name, l.items})
	return raw
}

func (c *changing) put(key resources.Key, labels map[string]string, spec any) {
	c.apply(store.Op{Put: testResource(key, labels, spec)})
}

func (c *changing) apply(op store.Op) {
	c.t.Helper()
	if c.held = append(c.held, op); c.x != nil && c.chance(3) {
		return
	}
	c.flush()
}

// flush applies what is held.
func (c *changing) flush() {
	c.t.Helper()
	if len(c.held) == 0 {
		return
	}
	if _, err := c.store.Apply(context.Background(), store.Batch{Ops: c.held}); err != nil {
		c.t.Fatal(err)
	}
	c.held = nil
}

func (c *changing) one(of ...any) any { return of[c.dice.IntN(len(of))] }

func (c *changing) chance(n int) bool { return c.dice.IntN(n) == 0 }

// dataplane writes a Dataplane anew.
func (c *changing) dataplane(name string) {
	at := slices.Index(changedProxies, name)
	if strings.HasPrefix(name, "egress") {
		c.egress(name)
		return
	}
	if strings.HasPrefix(name, "edge") {
		c.edge(name, at)
		return
	}
	inbounds := []any{map[string]any{"name": "main", "port": 80, "servicePort": c.one(8080, 8080, 8090), "protocol": "http",
		"tags": map[string]any{"team": c.one("a", "a", "b"), "kuma.io/service": "svc"}}}
	if name == "tcp" || name == "backend-1" {
		inbounds = append(inbounds, map[string]any{"name": "db", "port": 81, "servicePort": 8081, "protocol": "tcp",
			"tags": map[string]any{resources.TagServerFirst: c.one("true", "false", "false")}})
	}
	var outbounds []any
	for i, service := range []string{"backend", "database", "streams", "plain", "out"} {
		if c.chance(6) {
			continue
		}
		ref := map[string]any{"kind": "MeshService", "name": service}
		if service == "out" {
			ref["kind"] = "MeshExternalService"
		} else if c.chance(4) {
			ref = map[string]any{"kind": "MeshService", "labels": map[string]any{resources.LabelDisplayName: service,
				resources.LabelZone: testHome.Zone}}
		}
		outbounds = append(outbounds, map[string]any{"port": 10001 + i, "backendRef": ref})
	}
	if c.chance(3) {
		outbounds = append(outbounds, map[string]any{"port": 10011, "tags": map[string]any{"kuma.io/service": c.one("svc", "backend", "none")}})
	}
	networking := map[string]any{"address": fmt.Sprintf("192.0.2.%d", 10+at), "inbound": inbounds, "outbound": outbounds}
	if c.chance(2) && name != "grpc" {
		networking["transparentProxying"] = map[string]any{"redirectPortOutbound": 15001,
			"redirectPortInbound": c.one(0, 0, 15006)}
	}
	if c.chance(2) {
		networking["admin"] = map[string]any{"port": 9902}
	}
	labels := map[string]string{"app": c.one("backend", "other").(string), "node": "n1"}
	if c.chance(2) {
		labels[resources.LabelWorkload] = "shop"
	}
	c.put(dataplaneKey(name), labels, map[string]any{"networking": networking})
}

// policy writes a policy, or removes one.
func (c *changing) policy() {
	typ := c.types[c.dice.IntN(len(c.types))]
	key := resources.Key{Type: typ, Mesh: "default", Name: c.one("p", "q", "r").(string)}
	if c.chance(4) {
		c.apply(store.Op{Delete: key})
		return
	}
	spec := map[string]any{"targetRef": c.one(
		map[string]any{"kind": "Mesh"},
		map[string]any{"kind": "Mesh"},
		map[string]any{"kind": "Dataplane", "name": c.one("caller", "caller-2", "tcp", "grpc")},
		map[string]any{"kind": "Dataplane", "labels": map[string]any{"app": c.one("backend", "other")}},
		map[string]any{"kind": "Dataplane", "labels": map[string]any{"app": "other"}, "sectionName": c.one("main", "db")},
		map[string]any{"kind": "MeshSubset", "tags": map[string]any{"team": "a"}},
		map[string]any{"kind": "MeshGateway", "name": c.one("g", "h")},
	)}
	for range 1 + c.dice.IntN(2) {
		of := c.lists[typ][c.dice.IntN(len(c.lists[typ]))]
		spec[of.name] = c.less(of.items)
	}
	labels := map[string]string{}
	if c.chance(8) {
		labels[resources.LabelEffect] = "shadow"
	}
	if typ == resources.TypeMeshProxyPatch {
		labels[resources.LabelRequired], labels[resources.LabelUnguarded] = c.one("true", "").(string), c.one("true", "").(string)
	}
	r := testResource(key, labels, spec)
	if resources.Validate(r, testHome) != nil && !c.chance(8) { // a server of another version may store and send it
		return
	}
	c.drawn++
	c.apply(store.Op{Put: r})
}

// change makes one change, of a policy for the most part.
func (c *changing) change() {
	if c.gateways && c.chance(2) {
		c.gateway()
		return
	}
	name := changedProxies[c.dice.IntN(len(changedProxies))]
	service := c.one("backend", "database", "streams", "plain").(string)
	switch c.dice.IntN(25) {
	case 7, 8:
		c.half()
	case 9:
		c.egress(c.one("egress-1", "egress-2").(string))
	case 0:
		c.dataplane(name)
	case 1:
		key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: service}
		if c.chance(4) {
			c.apply(store.Op{Delete: key})
			return
		}
		c.put(key, nil, map[string]any{
			"selector": map[string]any{"dataplaneLabels": map[string]any{"matchLabels": map[string]any{"app": c.one("backend", "other")}}},
			"ports": []any{map[string]any{"name": "port", "port": 80 + c.dice.IntN(2), "targetPort": c.one("main", "db"),
				"appProtocol": c.one("http", "tcp", "grpc")}}})
	case 2:
		c.sessions[name].end()
		c.sessions[name] = connectWhole(c.t, c.x, name)
	case 3:
		spec := map[string]any{}
		if c.chance(2) {
			spec["networking"] = map[string]any{"outbound": map[string]any{"passthrough": c.chance(2)}}
		}
		if c.chance(3) {
			spec["routing"] = map[string]any{"zoneEgress": true}
		}
		c.apply(store.Op{Put: testResource(resources.Key{Type: resources.TypeMesh, Name: "default"}, nil, spec)})
	case 4, 5:
		c.gateway()
	case 6:
		c.external(c.one("out", "out-2").(string))
	case 10:
		c.belief()
	default:
		c.policy()
	}
}
