package zone

import (
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// egressConditions reports whether services outside the mesh are reached where the mesh asks for an egress.
type egressConditions struct {
	store store.Reader
	home  resources.Home
	// started is the time from which this server knows about proxies.
	started time.Time
	// presence is Proxies.Egress.
	presence func(dataplane resources.Key) xds.Presence
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
	seen := sightings{since: c.started}
	for dp := range snap.List(store.Query{Type: resources.TypeDataplane, Mesh: r.Mesh}) {
		if xds.IsEgress(dp, c.home) {
			seen.add(c.presence(dp.Key))
		}
	}
	return []resources.Condition{seen.condition()}
}

// sightings are the egresses of a zone, grouped by the state of their proxies.
type sightings struct {
	there, connected, serving, awaited int
	// since is when the last proxy disconnected, or when the server started.
	since time.Time
}

func (s *sightings) add(one xds.Presence) {
	s.there++
	switch {
	case one.Connected && !one.Avoided:
		s.connected++
		s.serving++
	case one.Connected:
		s.connected++
	case one.Awaited:
		s.awaited++
	}
	if one.Left.After(s.since) {
		s.since = one.Left
	}
}

func (s *sightings) condition() resources.Condition {
	out := resources.Condition{Type: resources.ConditionEgress, Status: resources.ConditionFalse}
	since := s.since.UTC().Format(time.RFC3339)
	switch {
	case s.there == 0:
		out.Reason = "NoEgress"
		out.Message = "no proxy of this zone reaches it: the mesh asks for an egress (routing.zoneEgress), and there is none: write a Dataplane with a listener of type ZoneEgress"
	case s.serving > 0:
		out.Status, out.Reason = resources.ConditionTrue, "Connected"
		out.Message = fmt.Sprintf("%d of %d egresses of this zone are connected", s.serving, s.there)
	case s.connected > 0:
		out.Reason = "NotServing"
		out.Message = fmt.Sprintf("the mesh asks for an egress, and of %d in this zone %d connected ones have not answered all that they were told: causewayctl rollout status mesh NAME says why", s.there, s.connected)
	case s.awaited > 0:
		out.Status, out.Reason = resources.ConditionUnknown, "Awaited"
		out.Message = fmt.Sprintf("no egress of %d has connected since the server started at %s, and one may still come back", s.there, since)
	default:
		out.Reason = "NotConnected"
		out.Message = fmt.Sprintf("the mesh asks for an egress, and of %d in this zone none is connected since %s: start one (causeway-zone bootstrap --egress)", s.there, since)
	}
	return out
}
