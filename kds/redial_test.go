package kds

import (
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestZoneMovesToAnotherReplica checks that when a replica stops, its zones connect to the next at once, which sends
// only changes.
func TestZoneMovesToAnotherReplica(t *testing.T) {
	t.Parallel()
	shared := store.NewMemory()
	replicas := []*testGlobal{startGlobal(t, shared), startGlobal(t, shared)}
	for _, name := range []string{"a", "b", "c"} {
		key, spec := permission(name)
		put(t, shared, written(t, globalHome, key, spec))
	}
	below := store.NewMemory()
	put(t, below, written(t, zoneHome("zone-1"), resources.Key{Type: resources.TypeMeshService, Mesh: "default",
		Name: "s"}, `{"ports":[{"port":80}]}`))
	z := startZone(t, "zone-1", replicas[0].address, below, func(c *ZoneConfig) {
		c.Others = []string{replicas[1].address}
		c.BackoffMin, c.BackoffMax = time.Hour, time.Hour // a zone that waits would fail this test
	})
	synced := func() bool {
		return count(below, resources.TypeMeshTrafficPermission) == count(shared,
			resources.TypeMeshTrafficPermission) && count(shared, resources.TypeMeshService) == 1
	}
	eventually(t, "in sync with one of them", synced)
	on, other := replicas[0], replicas[1]
	if on.InSession("zone-1") == other.InSession("zone-1") {
		t.Fatal("the zone is on neither, or on both")
	} else if other.InSession("zone-1") {
		on, other = other, on
	}
	on.stop()
	key, spec := permission("d")
	put(t, shared, written(t, globalHome, key, spec))
	eventually(t, "in sync with the other one", synced)
	eventually(t, "all types answered", func() bool { return other.events.count(Received, resources.TypeMeshService) > 0 })
	if sent := other.events.resources(1) + z.events.resources(2); sent != 1 {
		t.Errorf("%d resources were sent after the move, want the one that changed", sent)
	}
}
