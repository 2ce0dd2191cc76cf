package xds

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

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

// TestRoutesOfOneOwnerToManyServices: one small route may be for a thousand services by their labels, and each client's proxy
// would have all of its rules for each. What one owner has it do is bounded for all services together; others have theirs.
func TestRoutesOfOneOwnerToManyServices(t *testing.T) {
	t.Parallel()
	const services, matches, value = 100, 100, 8000
	s := store.NewMemory()
	var batch store.Batch
	put := func(typ resources.Type, mesh, namespace, name string, spec map[string]any) {
		r := testResource(resources.Key{Type: typ, Mesh: mesh, Namespace: namespace, Name: name}, map[string]string{"tier": "all"}, spec)
		batch.Ops = append(batch.Ops, store.Op{Put: r})
	}
	service := func(namespace, name, protocol string) {
		put(resources.TypeMeshService, "default", namespace, name, map[string]any{"ports": []any{map[string]any{"port": 80, "appProtocol": protocol}}})
	}
	var paths []any
	for i := range matches {
		paths = append(paths, map[string]any{"path": map[string]any{"type": "Exact", "value": fmt.Sprint("/", i)}})
	}
	route := func(namespace string, to map[string]any) {
		to["kind"] = "MeshService"
		put(resources.TypeMeshHTTPRoute, "default", namespace, "route", map[string]any{"to": []any{map[string]any{"targetRef": to,
			"rules": []any{map[string]any{"matches": paths, "default": map[string]any{"filters": []any{map[string]any{
				"type": "RequestHeaderModifier", "requestHeaderModifier": map[string]any{"set": []any{map[string]any{
					"name": "x", "value": strings.Repeat("x", value)}}}}}}}}}}})
	}
	for i := range services {
		service("many", fmt.Sprint("s-", i), "http")
	}
	service("other", "s", "http")
	route("many", map[string]any{"labels": map[string]any{"tier": "all", resources.LabelNamespace: "many"}})
	route("other", map[string]any{"name": "s"})
	put(resources.TypeMeshHTTPRoute, "default", "", "operators", map[string]any{"to": []any{map[string]any{
		"targetRef": map[string]any{"kind": "MeshService", "labels": map[string]any{"tier": "all"}},
		"rules": []any{map[string]any{"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/of-operators"}}},
			"default": map[string]any{}}}}}})
	put(resources.TypeHostnameGenerator, "", "", "all", map[string]any{"selector": map[string]any{"meshService": map[string]any{}},
		"template": "{{ .DisplayName }}.{{ .Namespace }}.internal"})
	put(resources.TypeDataplane, "default", "mine", "a", map[string]any{"networking": map[string]any{
		"address": "192.0.2.99", "inbound": []any{map[string]any{"port": 80}}}})
	if _, err := s.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	session := newSession(testProxies(s))
	defer session.end()
	node := testNode("a")
	node.Metadata = asksForNames(t)
	node.Metadata.Fields[NamespaceKey] = structpb.NewStringValue("mine")
	if err := session.identify(node); err != nil {
		t.Fatal(err)
	}
	size, others := 0, 0
	for _, table := range session.proxy.state.Load().served(kindRoute) {
		size += len(table.delta.GetResource().GetValue())
		if !strings.Contains(string(table.delta.GetResource().GetValue()), "/of-operators") {
			t.Errorf("%s has no route of the operator, whose rules are not the ones that are too many", table.name)
		}
		if strings.Contains(table.name, "other") {
			others = len(table.delta.GetResource().GetValue())
		}
	}
	if others < matches*value {
		t.Errorf("the routes of another owner have %d bytes, want at least %d", others, matches*value)
	}
	if most := maxOwnerRouteBytes * 5 / 4; size-others > most || size-others < maxOwnerRouteBytes/2 {
		t.Errorf("the routes of one owner have %d bytes, want less than %d", size-others, most)
	}
}

// TestRoutesWithLargeRetries: what other policies say of each route counts, too: a small route and a small MeshRetry would
// make a large table.
func TestRoutesWithLargeRetries(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	var batch store.Batch
	put := func(typ resources.Type, namespace, name string, spec map[string]any) {
		batch.Ops = append(batch.Ops, store.Op{Put: testResource(resources.Key{Type: typ, Mesh: "default", Namespace: namespace, Name: name}, nil, spec)})
	}
	var paths, headers []any
	for i := range 2000 {
		paths = append(paths, map[string]any{"path": map[string]any{"type": "Exact", "value": fmt.Sprint("/", i)}})
	}
	for i := range 200 {
		headers = append(headers, map[string]any{"name": fmt.Sprint(strings.Repeat("x", 100), i), "type": "Present"})
	}
	to := map[string]any{"kind": "MeshService", "name": "s"}
	put(resources.TypeMeshService, "many", "s", map[string]any{"ports": []any{map[string]any{"port": 80, "appProtocol": "http"}}})
	put(resources.TypeMeshHTTPRoute, "many", "route", map[string]any{"to": []any{map[string]any{"targetRef": to,
		"rules": []any{map[string]any{"matches": paths, "default": map[string]any{}}}}}})
	put(resources.TypeMeshRetry, "many", "retry", map[string]any{"to": []any{map[string]any{"targetRef": to,
		"default": map[string]any{"http": map[string]any{"numRetries": 1, "retriableRequestHeaders": headers}}}}})
	put(resources.TypeDataplane, "", "a", map[string]any{"networking": map[string]any{"address": "192.0.2.99",
		"inbound": []any{map[string]any{"port": 80}}, "outbound": []any{map[string]any{"port": 10000,
			"backendRef": map[string]any{"kind": "MeshService", "name": "s", "namespace": "many", "port": 80}}}}})
	if _, err := s.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	session := connect(testProxies(s), "a")
	defer session.end()
	tables := session.proxy.state.Load().served(kindRoute)
	if len(tables) != 1 {
		t.Fatalf("%d tables", len(tables))
	}
	for _, table := range tables {
		if size := len(table.delta.GetResource().GetValue()); size > maxTableBytes*5/4 || size < maxTableBytes/2 {
			t.Errorf("the table has %d bytes, want about %d", size, maxTableBytes)
		}
	}
}
