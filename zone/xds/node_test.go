package xds

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
)

func testNode(name string) *corev3.Node { return &corev3.Node{Id: NodeID("default", name)} }

func TestNodeNamesItsDataplane(t *testing.T) {
	t.Parallel()
	key, err := DataplaneOf(testNode("a.b"))
	if want := (resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "a.b"}); err != nil || key != want {
		t.Errorf("got %v, %v", key, err)
	}
}

// FuzzNode: no node makes a panic, and what is accepted leads back to the same id.
func FuzzNode(f *testing.F) {
	seed, err := proto.Marshal(testNode("backend"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, raw []byte) {
		node := &corev3.Node{}
		if proto.Unmarshal(raw, node) != nil {
			return
		}
		envoyVersion(node)
		key, err := DataplaneOf(node)
		if err == nil && NodeID(key.Mesh, key.Name) != node.Id {
			t.Errorf("%q became %v", node.Id, key)
		}
	})
}
