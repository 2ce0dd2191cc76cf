package matching

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// grant is a decoded MeshReferenceGrant.
type grant struct {
	owner resources.Owner
	spec  *resources.MeshReferenceGrant
}

// readGrants indexes the grants by mesh. It skips those that do not decode: they grant nothing.
func (x *Destinations) readGrants(all []*resources.Resource) {
	for _, r := range all {
		if spec, err := resources.SpecAs[resources.MeshReferenceGrant](r); err == nil {
			if x.grants == nil {
				x.grants = map[string][]grant{}
			}
			x.grants[r.Mesh] = append(x.grants[r.Mesh], grant{resources.OwnerOf(r, x.systemNamespace), spec})
		}
	}
}

// notPermitted returns the reason why the referrer must not send to the service, or an empty string if it may.
// Consumers and zone operators act for their own clients, and the mesh operator for all clients; the permissions of the
// service decide what those clients may do. A producer acts for everyone who calls its service, under the callers'
// identities. It may send them to services of its own zone and namespace, and elsewhere only if a MeshReferenceGrant
// permits it. Everything without a known permission is denied. Source: seed 004, "Cross namespace traffic forwarding
// and ReferenceGrant".
func (x *Destinations) notPermitted(from Referrer, d *Destination) string {
	switch from.Role {
	case resources.RoleSystem, resources.RoleConsumer:
		return ""
	}
	if x.permits(from, d.Resource) {
		return ""
	}
	if d.Resource.Type == resources.TypeMeshMultiZoneService {
		return x.notPermittedMembers(from, d)
	}
	return x.missingGrant(from, d)
}

// notPermittedMembers checks a MeshMultiZoneService by all of its members. Without members, it is not permitted unless
// a grant names it.
func (x *Destinations) notPermittedMembers(from Referrer, d *Destination) string {
	members := x.members(d.Resource)
	for _, m := range members {
		if !x.permits(from, m.Resource) {
			return fmt.Sprintf("%s, or a grant of the mesh operator for %s", x.missingGrant(from, m), d.KRI)
		}
	}
	if len(members) == 0 {
		return x.missingGrant(from, d)
	}
	return ""
}

// members returns the MeshServices behind a MeshMultiZoneService, sorted by key.
func (x *Destinations) members(r *resources.Resource) []*Destination {
	spec, err := resources.SpecAs[resources.MeshMultiZoneService](r)
	if err != nil {
		return nil
	}
	ref := &resources.TargetRef{Kind: resources.KindMeshService, Labels: spec.Selector.MeshService.MatchLabels}
	return keep(x.byLabels(Referrer{Mesh: r.Mesh}, ref), func(d *Destination) bool { return spec.Selects(d.Resource) })
}

// permits reports whether the service belongs to the referrer or is granted to it.
func (x *Destinations) permits(from Referrer, service *resources.Resource) bool {
	owner := resources.Owner{Zone: from.Zone, Namespace: from.Namespace}
	if owner.Zone != "" && owner.Namespace != "" && resources.OwnerOf(service, x.systemNamespace) == owner {
		return true
	}
	for _, g := range x.grants[from.Mesh] {
		if g.permits(string(from.Type), owner, service, x.systemNamespace) {
			return true
		}
	}
	return false
}

func (g *grant) permits(kind string, route resources.Owner, service *resources.Resource, systemNamespace string) bool {
	covered := false
	for i := range g.spec.From {
		covered = covered || g.spec.From[i].Covers(g.owner, kind, route)
	}
	if !covered {
		return false
	}
	for i := range g.spec.To {
		if g.spec.To[i].Covers(g.owner, service, systemNamespace) {
			return true
		}
	}
	return false
}

// refNotPermitted is the prefix of the problem that a grant is missing, in Gateway API's terms.
const refNotPermitted = "RefNotPermitted: "

func (x *Destinations) missingGrant(from Referrer, d *Destination) string {
	owner := resources.OwnerOf(d.Resource, x.systemNamespace)
	by := "of its zone and namespace" // the KRI names them to readers who may see it
	switch {
	case owner.IsGlobal():
		by = "of the mesh operator"
	case owner.IsOperator():
		by = "of the operator of its zone"
	}
	return fmt.Sprintf("%s%s is not of the producer's own zone and namespace, and no MeshReferenceGrant %s lets a %s of zone %s, namespace %s send there",
		refNotPermitted, d.KRI, by, from.Type, from.Zone, from.Namespace)
}
