package zone

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// egressConditions reports whether services outside the mesh are reached where the mesh asks for an egress.
type egressConditions struct {
	store store.Reader
	home  resources.Home
	// connected is Proxies.Connected.
	connected func(dataplane resources.Key) bool
}

// of returns the condition of a MeshExternalService in a mesh that asks for an egress, and nil for other resources.
func (c *egressConditions) of(r *resources.Resource) []resources.Condition {
	if r.Type != resources.TypeMeshExternalService {
		return nil
	}
	snap := c.store.Snapshot()
	if !xds.AsksForEgress(snap.Get(resources.Key{Type: resources.TypeMesh, Name: r.Mesh})) {
		return nil
	}
	out := resources.Condition{Type: resources.ConditionEgress, Status: resources.ConditionTrue, Reason: "Connected"}
	there, connected := 0, 0
	for dp := range snap.List(store.Query{Type: resources.TypeDataplane, Mesh: r.Mesh}) {
		if xds.IsEgress(dp, c.home) {
			there++
			if c.connected(dp.Key) {
				connected++
			}
		}
	}
	switch {
	case there == 0:
		out.Status, out.Reason = resources.ConditionFalse, "NoEgress"
		out.Message = "no proxy of this zone reaches it: the mesh asks for an egress (routing.zoneEgress), and there is none: write a Dataplane with a listener of type ZoneEgress"
	case connected == 0:
		out.Status, out.Reason = resources.ConditionFalse, "NotConnected"
		out.Message = fmt.Sprintf("the mesh asks for an egress, and of %d in this zone none is connected: start one (causeway-zone bootstrap --egress)", there)
	default:
		out.Message = fmt.Sprintf("%d of %d egresses of this zone are connected", connected, there)
	}
	return []resources.Condition{out}
}
