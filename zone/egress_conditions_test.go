package zone

import (
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/xds"
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
	var is xds.Presence
	c := &egressConditions{store: s, home: home, presence: func(resources.Key) xds.Presence { return is },
		started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	external := put(s, resources.TypeMeshExternalService, "default", "", "bank", `{"match":{"port":443}}`)
	want := func(about, reason string) {
		t.Helper()
		got := c.of(external)
		if reason == "" && len(got) > 0 || reason != "" && (len(got) != 1 || got[0].Reason != reason ||
			(got[0].Status == resources.ConditionTrue) != (reason == "Connected") || (got[0].Status == resources.ConditionUnknown) != (reason == "Awaited")) {
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
	is = xds.Presence{Awaited: true}
	want("it may come back after a start", "Awaited")
	is = xds.Presence{Connected: true, Avoided: true}
	want("its Envoy refuses all that it is told", "NotServing")
	is = xds.Presence{Connected: true}
	want("it is there", "Connected")
	is = xds.Presence{Left: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)}
	if got := c.of(external)[0].Message; !strings.Contains(got, "since 2026-02-03T04:05:06Z") {
		t.Errorf("since when it is away: %q", got)
	}
}
