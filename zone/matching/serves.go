package matching

import (
	"strconv"

	"github.com/causeway-mesh/causeway/resources"
)

// ServesSubset reports whether a MeshService selects an inbound of the proxy that has the tags, and points to it.
func ServesSubset(r *resources.Resource, p *Proxy, tags map[string]string) bool {
	for i := range p.Inbounds {
		if in := &p.Inbounds[i]; Serves(r, p, in, "") && p.HasTags(in, tags) {
			return true
		}
	}
	return false
}

// Serves reports whether a MeshService selects the inbound and has a port that points to it. port, a name or a number,
// restricts that to one port of the service; empty means any. Serves returns false if r is not in the proxy's own zone
// and namespace.
func Serves(r *resources.Resource, p *Proxy, in *InboundPort, port string) bool {
	if !isNeighbour(p, r) {
		return false
	}
	service, err := resources.SpecAs[resources.MeshService](r)
	if err != nil || !servesInbound(&service.Selector, p, in) {
		return false
	}
	for i := range service.Ports {
		sp := &service.Ports[i]
		named := port == "" || sp.Name == port || strconv.FormatUint(uint64(sp.Port), 10) == port
		if named && pointsTo(sp, in) {
			return true
		}
	}
	return false
}
