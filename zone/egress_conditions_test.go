package zone

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestEgressConditions: where a mesh asks for an egress, the condition of a MeshExternalService follows the egresses.
func TestEgressConditions(t *testing.T) {
	t.Parallel()
	home := resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}
	put := func(s *store.Memory, typ resources.Type, mesh, namespace, name, spec string) *resources.Resource {
		t.Helper()
		parsed, err := resources.NewSpec(typ, []byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		r := home.Labelled(&resources.Resource{Spec: parsed, Key: resources.Key{Type: typ, Mesh: mesh, Namespace: namespace,
			Name: name}})
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	s := store.NewMemory()
	connected := false
	c := &egressConditions{store: s, home: home, connected: func(resources.Key) bool { return connected }}
	external := put(s, resources.TypeMeshExternalService, "default", "", "bank", `{"match":{"port":443}}`)
	want := func(about, reason string) {
		t.Helper()
		got := c.of(external)
		if reason == "" && len(got) > 0 || reason != "" && (len(got) != 1 || got[0].Reason != reason ||
			(got[0].Status == resources.ConditionTrue) != (reason == "Connected")) {
			t.Errorf("%s: %v, want %q", about, got, reason)
		}
	}
	put(s, resources.TypeMesh, "", "", "default", `{}`)
	want("nobody asks", "")
	put(s, resources.TypeMesh, "", "", "default", `{"routing":{"zoneEgress":true}}`)
	want("there is none", "NoEgress")
	const out = `{"networking":{"address":"192.0.2.1","listeners":[{"type":"ZoneEgress","port":1}]}}`
	put(s, resources.TypeDataplane, "default", "evil", "out", out)
	want("one in a namespace is none", "NoEgress")
	put(s, resources.TypeDataplane, "default", "", "out", out)
	want("it is not connected", "NotConnected")
	connected = true
	want("it is there", "Connected")
}
