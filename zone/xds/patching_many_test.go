package xds

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestOwnersPatchesOfOneProxyAreBounded: an owner's many patches cost every change of the proxy no more than the limit.
// The ones left out say so, and an operator's applies however many there are.
func TestOwnersPatchesOfOneProxyAreBounded(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	put := func(typ resources.Type, namespace, name string, spec map[string]any) {
		t.Helper()
		labels := map[string]string{}
		if namespace != "" {
			labels[resources.LabelNamespace] = namespace
		}
		r := testResource(resources.Key{Type: typ, Mesh: "default", Namespace: namespace, Name: name}, labels, spec)
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(namespace, name string) {
		cluster := map[string]any{"operation": "Add", "value": "name: added-" + name + "\nconnectTimeout: 1s\ntype: STATIC\n"}
		put(resources.TypeMeshProxyPatch, namespace, name, map[string]any{"default": map[string]any{
			"appendModifications": []any{map[string]any{"cluster": cluster}}}})
	}
	const more = 3
	for i := range maxOwnersPatches + more {
		patch("shop", fmt.Sprintf("p%03d", i))
	}
	patch("", "operators")
	put(resources.TypeDataplane, "shop", "web", map[string]any{"networking": map[string]any{"address": "192.0.2.1"}})
	x := testProxies(s)
	session := newSession(x)
	defer session.end()
	node := testNode("web")
	node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{NamespaceKey: structpb.NewStringValue("shop")}}
	if err := session.identify(node); err != nil {
		t.Fatal(err)
	}
	x.catchUp()
	added := 0
	for _, r := range session.proxy.state.Load().served(kindCluster) {
		if strings.HasPrefix(r.name, "added-p") {
			added++
		}
	}
	if added != maxOwnersPatches || session.proxy.state.Load().served(kindCluster).get("added-operators") == nil {
		t.Errorf("%d of an owner's patches apply, want %d and the operator's", added, maxOwnersPatches)
	}
	if got := strings.Count(problemsOf(session.proxy)[problemPolicies], "the maximum for one proxy"); got != more {
		t.Errorf("%d patches say that they are left out, want %d: %v", got, more, problemsOf(session.proxy))
	}
}
