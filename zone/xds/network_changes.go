package xds

import (
	"cmp"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// dataplanesIn returns all Dataplanes of a mesh.
func (n *network) dataplanesIn(mesh string) []*resources.Resource {
	return slices.Collect(n.store.Snapshot().List(store.Query{Type: resources.TypeDataplane, Mesh: mesh}))
}

// dataplaneChanged marks the ports with a Dataplane, old or next, as an endpoint.
func (n *network) dataplaneChanged(old, next *resources.Resource) {
	if n.isEgress(old) || n.isEgress(next) {
		n.egressChanged(cmp.Or(old, next).Mesh)
	}
	if len(n.ports) == 0 {
		return
	}
	var key resources.Key
	for _, r := range []*resources.Resource{old, next} {
		if r == nil || r.Zone() != n.home.Zone {
			continue
		}
		key = r.Key
		m := n.read(r)
		for _, port := range n.ports {
			switch {
			case m == nil || port.mesh() != r.Mesh:
			case port.tagged != nil && port.tagged.Concerns(m.match):
				n.doubt(port)
			case m.servesAny(port.services):
				n.dirtyPorts[port] = struct{}{}
			}
		}
	}
	if next == nil {
		delete(n.decoded, key)
	}
}

// ingressChanged marks the ports reached through ingresses of a zone.
func (n *network) ingressChanged(zone string) {
	for _, port := range n.ports {
		if port.tagged != nil && zone != n.home.Zone { // it may list the tags
			n.doubt(port)
		}
		for _, s := range port.services {
			if s.Zone() == zone && zone != n.home.Zone && !port.localOnly {
				n.dirtyPorts[port] = struct{}{}
			}
		}
	}
}

// trustChanged marks the ports of a mesh: their identity secrets contain the mesh's trust bundles.
func (n *network) trustChanged(mesh string) {
	for _, port := range n.ports {
		if port.mesh() == mesh && !port.localOnly {
			n.dirtyPorts[port] = struct{}{}
		}
	}
}

// serviceChanged marks the ports that a service backs, or may now back.
func (n *network) serviceChanged(old, next *resources.Resource) {
	for _, port := range n.ports {
		for _, r := range []*resources.Resource{old, next} {
			switch {
			case r == nil || r.Mesh != port.mesh():
			case port.tagged != nil && r.Type == resources.TypeMeshService && port.tagged.ConcernsService(r, n.home.Zone):
				n.doubt(port)
			case n.behind(port, r):
				n.dirtyPorts[port] = struct{}{}
			}
		}
	}
}

func (n *network) behind(port *usedPort, r *resources.Resource) bool {
	of := port.service.Resource
	if of.Key == r.Key {
		return true
	}
	if of.Type != resources.TypeMeshMultiZoneService || r.Type != resources.TypeMeshService {
		return false
	}
	spec, err := resources.SpecAs[resources.MeshMultiZoneService](of)
	return err == nil && spec.Selects(r)
}

// carries reports whether have includes all of want.
func carries(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}
