package kds

import (
	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
)

// storeUnder chooses the name under which a zone's resource is stored. That is the name on the wire, unless another owner's
// resource has it, or it is the hashed name that the global's own resource of that display name has in zones, whether
// or not that resource exists. A copy that already has its alternative name keeps it.
func (v *receiver) storeUnder(p *changeset, r *resources.Resource) {
	if v.arrival.Direction != exchange.ZoneToGlobal {
		return
	}
	apart := r.Key
	apart.Name = exchange.ApartName(r.Mesh, r.Name, v.arrival.Zone)
	if held := p.snapshot.Get(apart); held != nil && v.isCopy(held) {
		r.Key = apart
		return
	}
	held := p.snapshot.Get(r.Key)
	if held != nil && v.mayReplace(held, r) != nil || held == nil && v.isGlobals(r) {
		r.Key = apart
	}
}

// isGlobals reports whether r's name is the hashed name of one of the global's own resources.
func (v *receiver) isGlobals(r *resources.Resource) bool {
	own := r.DisplayName()
	return r.Name == hashing.Name(r.Mesh, own) || r.Name == hashing.Name(r.Mesh, own, v.arrival.OwnNamespace)
}

// wireOf returns the name that the peer uses for a copy.
func (v *receiver) wireOf(r *resources.Resource) string {
	if v.arrival.Direction == exchange.ZoneToGlobal && exchange.MayBeApart(r.Name) {
		if hashed := exchange.NameInZone(r, v.arrival.Zone); exchange.IsApart(r, hashed) {
			return exchange.WireName(hashed, r.Mesh)
		}
	}
	return exchange.WireName(r.Name, r.Mesh)
}
