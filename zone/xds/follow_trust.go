package xds

import (
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// workInBeliefLocked applies a change of proxies' identities, or of whom they trust.
func (x *Proxies) workInBeliefLocked(revision uint64, key resources.Key) {
	m := x.meshes[key.Mesh]
	isNew := m != nil && m.since < revision
	switch key.Type {
	case resources.TypeSecret:
		if named, ok := secrets.NamedOf(key); ok {
			x.workInSourceLocked(named.Mesh)
		}
		if meshDomain, ok := identity.MeshDomainOf(key); ok && x.meshes[identity.MeshOfDomain(meshDomain)] != nil {
			x.workInIdentitiesLocked(x.meshes[identity.MeshOfDomain(meshDomain)])
		}
	case resources.TypeMeshIdentity:
		if m != nil {
			x.workInIdentitiesLocked(m)
		}
		if isNew {
			x.workInTrustLocked(m) // it may name the trust domains of a zone
			x.workInTrafficLocked(m)
		}
	case resources.TypeMeshTrust:
		if isNew {
			x.workInTrustLocked(m)
			x.workInTrafficLocked(m)
		}
	}
}

// workInTrustLocked rebuilds the mesh's validation secret and wakes the streams that ask for it.
func (x *Proxies) workInTrustLocked(m *mesh) {
	if !x.setTrustLocked(m, x.cfg.Store.Snapshot()) {
		return
	}
	x.network.trustChanged(m.name)
	for p := range m.proxies {
		for s := range p.sessions {
			s.expect(kindSecret, x.cause)
			s.wake(kindSecret)
		}
	}
}

// setTrustLocked reports whether the secret changed. The snapshot may be ahead of the current commit; later commits
// then change nothing.
func (x *Proxies) setTrustLocked(m *mesh, snap store.Snapshot) bool {
	bundles := identity.BundlesOf(snap, m.name, x.cfg.Home)
	for _, r := range bundles.Refused {
		x.cfg.Log.Warn("trust refused", "mesh", m.name, "type", r.Trust.Type, "name", r.Trust.Name, "zone",
			r.Trust.Zone(), "reason", r.Reason)
	}
	next, err := newTrust(trustName(m.name), bundles)
	if err != nil {
		x.cfg.Log.Error("cannot send the mesh's trust bundles; proxies keep the previous ones", "mesh", m.name, "error", err)
		return false
	}
	old := m.trust.Load()
	if next == nil || old != nil && old.version == next.version {
		return false
	}
	m.trust.Store(next)
	return true
}
