package identity

import (
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Grants hold the trust domains that zones may speak for in a mesh. They are immutable.
type Grants struct {
	mesh string
	// global are the MeshIdentities of the global.
	global []*resources.MeshIdentity
}

// GrantsIn reads the grants of a mesh from a store.
func GrantsIn(snap store.Snapshot, mesh string) Grants {
	out := Grants{mesh: mesh}
	for r := range snap.List(store.Query{Type: resources.TypeMeshIdentity, Mesh: mesh}) {
		if r.Zone() != "" {
			continue
		}
		if spec, err := resources.SpecAs[resources.MeshIdentity](r); err == nil {
			out.global = append(out.global, spec)
		}
	}
	return out
}

// MaySpeak reports whether a zone may publish authorities of a trust domain. The empty zone is the global, which may
// publish any.
func (g Grants) MaySpeak(zone, domain string) bool {
	if zone == "" || resources.IsTrustDomainOf(domain, zone) {
		return true
	}
	for _, spec := range g.global {
		if _, selects := spec.Dataplanes(); !selects || spec.Provider.Type != resources.ProviderBundled {
			continue
		}
		if name, err := spec.TrustDomainIn(g.mesh, zone); err == nil && name == domain {
			return true
		}
	}
	return false
}

// DomainsOf returns the trust domains, besides the zone's own, that identities of a zone's workloads may be in: those
// for which the zone publishes authorities, and those that MeshIdentities of the global name.
func (g Grants) DomainsOf(snap store.Snapshot, zone string) map[string]bool {
	out := map[string]bool{}
	for r := range snap.List(store.Query{Type: resources.TypeMeshTrust, Mesh: g.mesh,
		Labels: map[string]string{resources.LabelZone: zone}}) {
		if spec, err := resources.SpecAs[resources.MeshTrust](r); err == nil && g.MaySpeak(zone, spec.TrustDomain) {
			out[spec.TrustDomain] = true
		}
	}
	for _, spec := range g.global {
		if _, selects := spec.Dataplanes(); !selects {
			continue
		}
		if name, err := spec.TrustDomainIn(g.mesh, zone); err == nil {
			out[name] = true
		}
	}
	return out
}
