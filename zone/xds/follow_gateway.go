package xds

import (
	"iter"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// serveGateway makes a built-in gateway's target serve the MeshGateway that selects it.
func (m *mesh) serveGateway(t *target, systemNamespace string) {
	if t.match.BuiltinGateway() && !t.proxyless {
		t.match = t.match.WithGateways(m.gateways.Candidates(t.match), systemNamespace)
		t.gateway = gatewayOf(t)
	}
}

// workInGatewayLocked marks the proxies that may have served a MeshGateway before its change, or may now.
func (x *Proxies) workInGatewayLocked(revision uint64, c *store.Change) {
	m := x.meshes[c.Key().Mesh]
	if m == nil || m.since >= revision {
		return
	}
	may := []*resources.Resource{c.Old, c.New}
	if c.New == nil {
		m.gateways.Remove(c.Key())
	} else if m.gateways.Add(c.New) {
		may = may[1:]
	}
	for _, r := range may {
		for p := range m.mayServe(r, x.cfg.Home.SystemNamespace) {
			x.network.mark(p, gatewayScope)
		}
	}
}

// mayServe yields the proxies that may serve a MeshGateway, some of them twice: none if it is nil.
func (m *mesh) mayServe(g *resources.Resource, systemNamespace string) iter.Seq[*proxy] {
	return func(yield func(*proxy) bool) {
		if g == nil {
			return
		}
		for tags := range matching.SelectorsOf(g) {
			for p := range fewest(m.atGateway, tags) {
				if p.target.match.MayServe(g, systemNamespace) && !yield(p) {
					return
				}
			}
		}
	}
}

// certificatesChangedLocked marks the proxies of a mesh's gateways whose certificates are in secrets or files.
func (x *Proxies) certificatesChangedLocked(mesh string) {
	m := x.meshes[mesh]
	if m == nil {
		return
	}
	for g := range m.gateways.All() {
		if !resources.RefersToSources(g) {
			continue
		}
		for p := range m.mayServe(g, x.cfg.Home.SystemNamespace) {
			if served := p.target.gateway.resource; served != nil && served.Key == g.Key {
				x.network.forget(g.Key) // plans know a mesh's sources by its destinations
				x.network.mark(p, sendingScope)
			}
		}
	}
}
