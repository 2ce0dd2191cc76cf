package zone

import (
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// expiries returns the expiry of the zone's credential (member), of the signing authority of each mesh (mesh/NAME), and
// of each other trust domain of a mesh (mesh/NAME:TRUST-DOMAIN).
func expiries(memberships *enrolment.Holder, authorities *identity.Authorities,
	durable store.Reader) map[string]time.Time {
	all := map[string]time.Time{}
	if m := memberships.Current(); m != nil {
		all["member"] = m.Expires
	}
	for mesh := range durable.Snapshot().List(store.Query{Type: resources.TypeMesh}) {
		for _, meshDomain := range authorities.MeshDomains(mesh.Name) {
			if a, err := authorities.For(meshDomain); err == nil {
				all["mesh/"+meshDomain] = a.Certificate().NotAfter
			}
		}
	}
	return all
}
