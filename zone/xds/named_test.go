package xds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestManyNamesOfOneOwner: however many services one namespace or one other zone has, under whatever names, those of
// operators, of the proxy's namespace and of the other owners keep their listeners and names.
func TestManyNamesOfOneOwner(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	var batch store.Batch
	put := func(typ resources.Type, mesh, namespace, name, zone string, spec map[string]any) {
		r := testResource(resources.Key{Type: typ, Mesh: mesh, Namespace: namespace, Name: name}, nil, spec)
		if zone != "" {
			r.Labels[resources.LabelZone], r.Labels[resources.LabelOrigin] = zone, resources.OriginGlobal
		}
		batch.Ops = append(batch.Ops, store.Op{Put: r})
	}
	service := func(namespace, name, zone string) {
		put(resources.TypeMeshService, "default", namespace, name, zone,
			map[string]any{"ports": []any{map[string]any{"port": 80, "appProtocol": "http"}}})
	}
	for i := range maxNamed + 100 {
		service("aaa", fmt.Sprintf("a-%d", i), "")
		service(fmt.Sprintf("far-%d", i%50), fmt.Sprintf("f-%d", i), "zone-0")
	}
	service("", "zz-operator", "")
	service("zz-mine", "mine", "")
	service("zz-other", "other", "")
	service("zz-far", "far", "zone-9")
	for name, template := range map[string]string{"all": "{{ .DisplayName }}.{{ .Namespace }}.{{ .Zone }}.internal", "one": "{{ .DisplayName }}.one.internal"} {
		put(resources.TypeHostnameGenerator, "", "", name, "", map[string]any{"selector": map[string]any{"meshService": map[string]any{}}, "template": template})
	}
	put(resources.TypeDataplane, "default", "zz-mine", "a", "", map[string]any{"networking": map[string]any{
		"address": "192.0.2.99", "inbound": []any{map[string]any{"port": 80}}}})
	if _, err := s.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	x := testProxies(s)
	session := newSession(x)
	defer session.end()
	node := testNode("a")
	node.Metadata = asksForNames(t)
	node.Metadata.Fields[NamespaceKey] = structpb.NewStringValue("zz-mine")
	if err := session.identify(node); err != nil {
		t.Fatal(err)
	}
	listeners := session.proxy.state.Load().served(kindListener)
	names := string(asYAML(t, listeners.get(dnsListener)))
	for _, name := range []string{"zz-operator.one.internal", "mine.zz-mine.zone-1.internal", "other.zz-other.zone-1.internal", "far.zz-far.zone-9.internal"} {
		if !strings.Contains(names, name) {
			t.Errorf("no %s", name)
		}
	}
	if n := strings.Count(names, "internal\n"); n != maxNamed || len(listeners) < maxNamed {
		t.Errorf("%d names, %d listeners", n, len(listeners))
	}
	if n := len(session.proxy.state.Load().served(kindCluster)); n > maxNamed+1 { // one is of the application
		t.Errorf("%d clusters for %d listeners", n, len(listeners))
	}
}

// TestNamesOfACluster: where the resolver of the cluster knows the names, the proxy answers no queries, and listens on what
// the names stand for there: on one address of each service.
func TestNamesOfACluster(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	put := func(typ resources.Type, namespace, name, zone, status string, spec map[string]any) {
		r := testResource(resources.Key{Type: typ, Mesh: map[bool]string{false: "default"}[typ == resources.TypeHostnameGenerator],
			Namespace: namespace, Name: name}, nil, spec)
		if zone != "" {
			r.Labels[resources.LabelZone], r.Labels[resources.LabelOrigin] = zone, resources.OriginGlobal
		}
		if status != "" {
			r.Status = []byte(status)
		}
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
	}
	ports := map[string]any{"ports": []any{map[string]any{"port": 80, "appProtocol": "http"}}}
	put(resources.TypeMeshService, "shop", "here", "", `{"vips":[{"ip":"10.1.0.7"}]}`, ports)
	put(resources.TypeMeshService, "shop", "far", "zone-2", "", ports)
	put(resources.TypeHostnameGenerator, "", "all", "", "", map[string]any{"selector": map[string]any{"meshService": map[string]any{}},
		"template": "{{ .DisplayName }}.{{ .Namespace }}.svc.mesh.local"})
	put(resources.TypeDataplane, "shop", "a", "", "", map[string]any{"networking": map[string]any{
		"address": "192.0.2.99", "inbound": []any{map[string]any{"port": 80}},
		"transparentProxying": map[string]any{"redirectPortInbound": 15006, "redirectPortOutbound": 15001}}})
	x := testProxies(s)
	for _, cluster := range []bool{true, false} {
		session := newSession(x)
		node := testNode("a")
		node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{NamespaceKey: structpb.NewStringValue("shop")}}
		if cluster {
			node.Metadata.Fields[DNSKey] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{DNSCluster: structpb.NewBoolValue(true)}})
		}
		if err := session.identify(node); err != nil {
			t.Fatal(err)
		}
		var found []string
		listeners := session.proxy.state.Load().served(kindListener)
		for _, l := range listeners {
			if _, at, ok := strings.Cut(l.name, "@"); ok {
				found = append(found, at)
			}
		}
		session.end()
		slices.Sort(found)
		want := 1 // the service of this zone, by its address
		if cluster {
			want = 2 // that of the other zone as well, by its VIP
		}
		if len(found) != want || found[0] != "10.1.0.7:80" || cluster && !strings.HasPrefix(found[1], "241.") || listeners.get(dnsListener) != nil {
			t.Errorf("with names %v: it listens on %s", cluster, found)
		}
	}
}

// TestAPodBehindItsOwnName: the addresses of a pod of a headless Service are those of a service, too. The pod's own proxy
// listens there for what comes in, and for nothing else, for others reach its listeners there.
func TestAPodBehindItsOwnName(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	var batch store.Batch
	service := func(name, pod, vips string) {
		r := testResource(resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "shop", Name: name}, nil,
			map[string]any{"selector": map[string]any{"dataplaneRef": map[string]any{"name": pod}}, "ports": []any{
				map[string]any{"port": 80, "appProtocol": "http"}, map[string]any{"port": 81, "appProtocol": "http"},
				map[string]any{"port": 15006}}})
		r.Labels[resources.LabelHeadless] = "true"
		r.Status = []byte(vips)
		batch.Ops = append(batch.Ops, store.Op{Put: r})
	}
	for name, ip := range map[string]string{"peers-0": "10.1.0.6", "peers-1": "10.1.0.7"} {
		service(name, name, fmt.Sprintf(`{"vips":[{"ip":%q},{"ip":"fd00::%s"}]}`, ip, name[len(name)-1:]))
		dp := testResource(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Namespace: "shop", Name: name}, nil,
			map[string]any{"networking": map[string]any{"address": ip, "inbound": []any{map[string]any{"port": 80}},
				"transparentProxying": map[string]any{"redirectPortInbound": 15006, "redirectPortOutbound": 15001}}})
		batch.Ops = append(batch.Ops, store.Op{Put: dp})
	}
	gone := testResource(resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "shop", Name: "gone"}, nil,
		map[string]any{"selector": map[string]any{"dataplaneRef": map[string]any{"name": "gone"}},
			"ports": []any{map[string]any{"port": 82, "appProtocol": "http"}}})
	gone.Labels[resources.LabelHeadless], gone.Status = "true", []byte(`{"vips":[{"ip":"10.1.0.6"}]}`) // a pod that had the address
	batch.Ops = append(batch.Ops, store.Op{Put: gone})
	if _, err := s.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	session := newSession(testProxies(s))
	defer session.end()
	node := testNode("peers-0")
	node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{NamespaceKey: structpb.NewStringValue("shop")}}
	if err := session.identify(node); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, l := range session.proxy.state.Load().served(kindListener) {
		if _, at, ok := strings.Cut(l.name, "@"); ok {
			found = append(found, at)
		}
	}
	slices.Sort(found)
	want := []string{"10.1.0.7:15006", "10.1.0.7:80", "10.1.0.7:81", "fd00::1:15006", "fd00::1:80", "fd00::1:81"}
	if !slices.Equal(found, want) {
		t.Errorf("it takes what goes out to %s, want %s", found, want)
	}
	for _, other := range []struct{ label, value string }{ // pods of the same name
		{resources.LabelZone, "zone-9"}, {resources.LabelNamespace, "bank"}, {resources.LabelHeadless, "false"},
	} {
		r := s.Snapshot().Get(resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "shop", Name: "peers-0"}).Clone()
		if !session.proxy.target.isAlone(r) {
			t.Fatal("it is not alone behind its own name")
		}
		if r.Labels[other.label] = other.value; session.proxy.target.isAlone(r) {
			t.Errorf("it is alone behind a service with %s=%s", other.label, other.value)
		}
	}
}

// TestAPodCallsItselfByName: the proxy of a pod behind a headless Service answers for the pod's own name, and listens where the
// name leads: on an address that nobody outside the pod can dial.
func TestAPodCallsItselfByName(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	service := testResource(resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "shop", Name: "peers-0"}, nil,
		map[string]any{"selector": map[string]any{"dataplaneRef": map[string]any{"name": "peers-0"}},
			"ports": []any{map[string]any{"port": 81, "appProtocol": "http"}}})
	service.Labels[resources.LabelHeadless], service.Status = "true", []byte(`{"vips":[{"ip":"10.1.0.6"}]}`)
	if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: service},
		{Put: testResource(resources.Key{Type: resources.TypeHostnameGenerator, Name: "all"}, nil, map[string]any{
			"selector": map[string]any{"meshService": map[string]any{}}, "template": "{{ .DisplayName }}.{{ .Namespace }}.mesh"})},
		{Put: testResource(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Namespace: "shop", Name: "peers-0"}, nil,
			map[string]any{"networking": map[string]any{"address": "10.1.0.6", "inbound": []any{map[string]any{"port": 80}},
				"transparentProxying": map[string]any{"redirectPortInbound": 15006, "redirectPortOutbound": 15001}}})},
	}}); err != nil {
		t.Fatal(err)
	}
	session := newSession(testProxies(s))
	defer session.end()
	node := testNode("peers-0")
	node.Metadata = asksForNames(t)
	node.Metadata.Fields[NamespaceKey] = structpb.NewStringValue("shop")
	if err := session.identify(node); err != nil {
		t.Fatal(err)
	}
	listeners := session.proxy.state.Load().served(kindListener)
	if names := string(asYAML(t, listeners.get(dnsListener))); !strings.Contains(names, "peers-0.shop.mesh") {
		t.Fatal("it does not answer for its own name")
	}
	var found []string
	for _, l := range listeners {
		if _, at, ok := strings.Cut(l.name, "@"); ok {
			found = append(found, at)
		}
	}
	slices.Sort(found)
	if len(found) != 1 || !strings.HasPrefix(found[0], "241.") {
		t.Errorf("it takes what goes out to %s, want the address of its name", found)
	}
}
