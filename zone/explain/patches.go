package explain

import (
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// loadPatches reads the MeshProxyPatches of a mesh. They do not affect the verdict, but may affect the proxy's
// behaviour.
func (w *World) loadPatches(name string, m *mesh) {
	for r := range w.list(resources.TypeMeshProxyPatch, name) {
		m.patches = append(m.patches, matching.NewPolicy(r, w.options.SystemNamespace))
		if w.hides(r) {
			m.hidden.add(r)
		}
	}
}

// patchesOf names the patches of a proxy: those that may admit what permissions deny, and the others, which may only
// refuse more.
func (m *mesh) patchesOf(proxy *matching.Proxy) (unguarded, guarded []string) {
	for _, p := range m.patches {
		home := p.Resource.Zone()
		if !p.Enforced() || home != "" && home != proxy.Zone || !matching.Selects(p, proxy) {
			continue
		}
		name := m.policyName(p.KRI.String())
		if resources.Unguarded(p.Resource) && p.Resource.Labels[resources.LabelOrigin] == resources.OriginZone && home != "" {
			unguarded = append(unguarded, name)
		} else {
			guarded = append(guarded, name)
		}
	}
	return unguarded, guarded
}
