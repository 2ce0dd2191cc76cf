package xds

import (
	"iter"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// loadTrafficLocked reads a mesh's TrafficTargets together with what they refer to.
func (x *Proxies) loadTrafficLocked(m *mesh, snap store.Snapshot) {
	x.eachTrafficTarget(m, snap, func(p *matching.Policy) { m.received.Add(p) })
}

func (x *Proxies) eachTrafficTarget(m *mesh, snap store.Snapshot, do func(*matching.Policy)) {
	list := func(t resources.Type) iter.Seq[*resources.Resource] {
		return snap.List(store.Query{Type: t, Mesh: m.name})
	}
	for _, p := range matching.TrafficTargets(x.cfg.Home.SystemNamespace, list) {
		do(p)
	}
}

// workInTrafficLocked reads a mesh's TrafficTargets again after a change of one of them, or of something that they
// refer to. It rebuilds the proxies that they select or selected. A proxy whose permissions stay the same gets no
// response.
func (x *Proxies) workInTrafficLocked(m *mesh) {
	affected := map[*proxy]struct{}{}
	var old []resources.Key
	for p := range m.received.All() {
		if p.Resource.Type == resources.TypeTrafficTarget {
			old = append(old, p.Resource.Key)
		}
	}
	for _, key := range old {
		m.remove(m.received, key, affected)
	}
	x.eachTrafficTarget(m, x.cfg.Store.Snapshot(), func(p *matching.Policy) { m.add(m.received, p, affected) })
	for p := range affected {
		x.staleLocked(p)
	}
}
