package matching

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// grant is a MeshReferenceGrant, read.
type grant struct {
	owner resources.Owner
	spec  *resources.MeshReferenceGrant
}

// readGrants leaves out what does not decode: it grants nothing.
func (x *Destinations) readGrants(all []*resources.Resource) {
	for _, r := range all {
		if spec, err := resources.SpecAs[resources.MeshReferenceGrant](r); err == nil {
			x.grants[r.Mesh] = append(x.grants[r.Mesh], grant{resources.OwnerOf(r, x.systemNamespace), spec})
		}
	}
}

// notPermitted says why what refers must not send to the service; empty where it may. Consumers and the operators of zones speak for
// clients of their own, and the operator of the mesh for all: what those clients get is for the service's permissions to say. A
// producer speaks for everybody who calls its service, under their identities, so it sends them to services of its own zone and
// namespace, and elsewhere as far as a MeshReferenceGrant permits. What is not known to be permitted is not.
// Source: seed 004, "Cross namespace traffic forwarding and ReferenceGrant".
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

// notPermittedMembers judges a MeshMultiZoneService by all that stand behind it. With nobody behind it nobody has permitted it.
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

// members are the MeshServices behind a MeshMultiZoneService, sorted by key.
func (x *Destinations) members(r *resources.Resource) []*Destination {
	spec, err := resources.SpecAs[resources.MeshMultiZoneService](r)
	if err != nil {
		return nil
	}
	ref := &resources.TargetRef{Kind: resources.KindMeshService, Labels: spec.Selector.MeshService.MatchLabels}
	return keep(x.byLabels(Referrer{Mesh: r.Mesh}, ref), func(d *Destination) bool { return spec.Selects(d.Resource) })
}

// permits reports whether the service is the referrer's own, or granted to it.
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

// refNotPermitted begins the problem of a reference that a grant is missing for, as Gateway API calls it.
const refNotPermitted = "RefNotPermitted: "

func (x *Destinations) missingGrant(from Referrer, d *Destination) string {
	owner := resources.OwnerOf(d.Resource, x.systemNamespace)
	by := "of its zone and namespace" // the KRI says which, to who may see it
	switch {
	case owner.IsGlobal():
		by = "of the mesh operator"
	case owner.IsOperator():
		by = "of the operator of its zone"
	}
	return fmt.Sprintf("%s%s is not of the producer's own zone and namespace, and no MeshReferenceGrant %s lets a %s of zone %s, namespace %s send there",
		refNotPermitted, d.KRI, by, from.Type, from.Zone, from.Namespace)
}
