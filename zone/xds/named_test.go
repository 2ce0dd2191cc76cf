package xds

import (
	"fmt"
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
}
