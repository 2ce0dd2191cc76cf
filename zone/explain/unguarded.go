package explain

import (
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// loadUnguarded reads the MeshProxyPatches of a mesh whose result may admit what permissions deny.
func (w *World) loadUnguarded(name string, m *mesh) {
	for r := range w.list(resources.TypeMeshProxyPatch, name) {
		if !resources.Unguarded(r) || r.Labels[resources.LabelOrigin] != resources.OriginZone {
			continue
		}
		m.unguarded = append(m.unguarded, matching.NewPolicy(r, w.options.SystemNamespace))
		if w.hides(r) {
			m.hidden.add(r)
		}
	}
}

// unguardedOf names the unguarded patches of a proxy.
func (m *mesh) unguardedOf(proxy *matching.Proxy) (out []string) {
	for _, p := range m.unguarded {
		if p.Enforced() && p.Resource.Zone() == proxy.Zone && matching.Selects(p, proxy) {
			out = append(out, m.policyName(p.KRI.String()))
		}
	}
	return out
}
