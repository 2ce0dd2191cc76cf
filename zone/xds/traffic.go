package xds

import (
	"iter"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// loadTrafficLocked reads a mesh's TrafficTargets together with what they refer to.
func (x *Proxies) loadTrafficLocked(m *mesh, snap store.Snapshot) {
	list := func(t resources.Type) iter.Seq[*resources.Resource] {
		return snap.List(store.Query{Type: t, Mesh: m.name})
	}
	for _, p := range matching.TrafficTargets(x.cfg.Home.SystemNamespace, list) {
		m.received.add(p)
	}
}

// workInTrafficLocked reads a mesh's TrafficTargets anew after one of them changed, or something that they refer to. The
// proxies that they selected or select are built again; who gets the same permissions as before is told nothing.
func (x *Proxies) workInTrafficLocked(m *mesh) {
	affected := map[*proxy]struct{}{}
	collect := func() {
		for key, policy := range m.received.byKey {
			if key.Type == resources.TypeTrafficTarget {
				for p := range m.selected(policy) {
					affected[p] = struct{}{}
				}
			}
		}
	}
	collect()
	for key := range m.received.byKey {
		if key.Type == resources.TypeTrafficTarget {
			m.received.remove(key)
		}
	}
	x.loadTrafficLocked(m, x.cfg.Store.Snapshot())
	collect()
	for p := range affected {
		x.staleLocked(p)
	}
}
