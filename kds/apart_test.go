package kds

import (
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestNamesThatCollideLiveBoth checks two owners whose names hash alike, in either order of arrival: both are kept,
// each can change and remove its own, and another zone gets both.
func TestNamesThatCollideLiveBoth(t *testing.T) {
	t.Parallel()
	service := func(zone, namespace, port string) *resources.Resource {
		return written(t, zoneHome(zone), resources.Key{Type: resources.TypeMeshService, Mesh: "default",
			Namespace: namespace, Name: "x"}, `{"ports":[{"port":`+port+`}]}`)
	}
	for _, order := range [][2]string{{"zone-3", "zone-30"}, {"zone-30", "zone-3"}} {
		t.Run(order[0]+" first", func(t *testing.T) {
			namespaces := map[string]string{"zone-3": "0", "zone-30": ""}
			g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Validate = resources.ValidatePeer })
			peers := map[string]*peer{}
			for _, zone := range order {
				p := dialPeer(t, zone, g.address, plainFeatures)
				p.openUp()
				peers[zone] = p
				if answer := p.send(resources.TypeMeshService, "1", nil,
					wireOf(t, zone, service(zone, namespaces[zone], "1"))); answer.GetErrorDetail() != nil {
					t.Fatalf("%s: %v", zone, answer.GetErrorDetail().GetMessage())
				}
			}
			if n := count(g.store, resources.TypeMeshService); n != 2 {
				t.Fatalf("the global has %d services", n)
			}
			there := store.NewMemory()
			startZone(t, "zone-1", g.address, there)
			eventually(t, "both in another zone", func() bool { return count(there, resources.TypeMeshService) == 2 })

			second := peers[order[1]]
			changed := wireOf(t, order[1], service(order[1], namespaces[order[1]], "2"))
			if answer := second.send(resources.TypeMeshService, "2", nil, changed); answer.GetErrorDetail() != nil ||
				count(g.store, resources.TypeMeshService) != 2 {
				t.Fatalf("changed: %v", answer)
			}
			if answer := second.send(resources.TypeMeshService, "3",
				[]string{changed.GetName()}); answer.GetErrorDetail() != nil {
				t.Fatal(answer)
			}
			eventually(t, "only the first in another zone", func() bool {
				left := find(there, resources.TypeMeshService, "x")
				return count(there, resources.TypeMeshService) == 1 && left.Zone() == order[0]
			})
		})
	}
}

// TestCompleteListsNameWhatIsApart checks that a list keeps a copy that it names by the wire's rule, whatever the
// copy's name here, and removes one that it does not name. The same holds for initial_resource_versions.
func TestCompleteListsNameWhatIsApart(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	first := written(t, zoneHome("zone-3"), resources.Key{Type: resources.TypeMeshService, Mesh: "default",
		Namespace: "0", Name: "x"}, `{}`)
	p := dialPeer(t, "zone-3", g.address, plainFeatures)
	p.openUp()
	p.send(first.Type, "1", nil, wireOf(t, "zone-3", first))
	second := wireOf(t, "zone-30", written(t, zoneHome("zone-30"),
		resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "x"}, `{}`))
	for i, items := range []int{1, 1, 0} {
		q := dialPeer(t, "zone-30", g.address, plainFeatures)
		q.openUp()
		if items == 1 {
			q.send(first.Type, "1", nil, second)
		} else {
			q.send(first.Type, "1", nil)
		}
		if n := count(g.store, first.Type); n != 1+items {
			t.Errorf("session %d: %d services", i, n)
		}
	}
}

// TestNameOfTheGlobalsOwn checks that a zone's resource does not go to other zones under the name that the global's own
// resource has there.
func TestNameOfTheGlobalsOwn(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.SystemNamespace = "kuma-system" })
	p := dialPeer(t, "kuma-sys", g.address, plainFeatures)
	p.openUp()
	impostor := written(t, zoneHome("kuma-sys"), resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default",
		Namespace: "tem", Name: "all"}, `{"to":[{"targetRef":{"kind":"MeshService","name":"a"},"default":{}}]}`)
	wire := wireOf(t, "kuma-sys", impostor)
	if want := exchange.WireName(hashing.Name("default", "all", "kuma-system"), "default"); wire.GetName() != want {
		t.Fatalf("the names do not collide: %s, %s", wire.GetName(), want)
	}
	if answer := p.send(impostor.Type, "1", nil, wire); answer.GetErrorDetail() != nil {
		t.Fatal(answer)
	}
	put(t, g.store, written(t, globalHome, resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default",
		Namespace: "kuma-system", Name: "all"}, `{"to":[]}`))
	there := store.NewMemory()
	startZone(t, "zone-1", g.address, there)
	eventually(t, "both in another zone", func() bool { return count(there, impostor.Type) == 2 })
	if held := there.Snapshot().Get(resources.Key{Type: impostor.Type, Mesh: "default",
		Name: hashing.Name("default", "all", "kuma-system")}); held == nil || held.Zone() != "" {
		t.Errorf("the global's own is %v", held)
	}
}
