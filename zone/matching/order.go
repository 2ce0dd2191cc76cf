package matching

import (
	"cmp"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// The ranks of the kinds of a top-level targetRef, ascending in specificity. Dataplane has one rank for each way to
// select by it.
const (
	rankMesh = iota
	rankDataplaneByLabels
	rankDataplaneByName
	rankDataplaneSection
	rankMeshSubset
	rankMeshGateway
	rankMeshService
	rankMeshServiceSubset
)

// roles are in ascending order of specificity (seed 004, "Order when merging").
var roles = []resources.Role{
	resources.RoleSystem, resources.RoleProducer, resources.RoleConsumer, resources.RoleWorkloadOwner,
}

// itemKinds are the kinds of a `to` or `from` item, in ascending order of specificity: a kind that another includes
// comes after it (seed 002, "New approach").
var itemKinds = []string{
	resources.KindMesh, resources.KindMeshSubset, resources.KindMeshGateway, resources.KindMeshService,
	resources.KindMeshServiceSubset, resources.KindMeshExternalService, resources.KindMeshMultiZoneService,
	resources.KindMeshTCPRoute, resources.KindMeshHTTPRoute,
}

// Order is the position of a policy's rule among those of other policies. Compare is the only way to compare orders.
type Order struct {
	written, topLevel, origin, role, item, section int
	displayName, kri                               string
	key                                            resources.Key
}

// OrderOf returns the position of one item of p. item is the targetRef of a `to` or `from` item, nil for an item of
// `rules`.
func OrderOf(p *Policy, item *resources.TargetRef) Order {
	o := Order{
		written: 1, topLevel: topLevelRank(p), role: slices.Index(roles, p.Role),
		displayName: p.Resource.DisplayName(), kri: p.KRI.String(), key: p.Resource.Key,
	}
	if p.zone != "" {
		o.origin = 1
	}
	if resources.IsInitialPolicy(p.Resource) && p.Role == resources.RoleSystem {
		o.written = 0
	}
	if item != nil {
		o.item = slices.Index(itemKinds, item.KindOrMesh())
		if item.SectionName != "" {
			o.section = 1
		}
	}
	return o
}

// Compare defines the one order of all rules, ascending, so that the last one wins where rules are merged: a mesh's
// initial policies before written ones, top-level kind, origin (global < zone), role, kind in `to` or `from`, its
// section, display name descending ("aaa" beats "bbb"), KRI. It returns zero only for two items of one policy, which
// keep the policy's order (sort stably). Sources: seed 004, "Order when merging"; seed 002, "New approach".
func Compare(a, b Order) int {
	return cmp.Or(
		cmp.Compare(a.written, b.written),
		cmp.Compare(a.topLevel, b.topLevel),
		cmp.Compare(a.origin, b.origin),
		cmp.Compare(a.role, b.role),
		cmp.Compare(a.item, b.item),
		cmp.Compare(a.section, b.section),
		cmp.Compare(b.displayName, a.displayName),
		cmp.Compare(a.kri, b.kri),
		// The types differ, or a name clash slipped through. The order must still be the same on every server.
		cmp.Compare(a.key.Type, b.key.Type),
		cmp.Compare(a.key.Namespace, b.key.Namespace),
		cmp.Compare(a.key.Name, b.key.Name),
	)
}

// topLevelRank returns the rank of the policy's target. Kinds that a top-level targetRef must not have, and that select
// nothing, come last. A target that only repeats the scope of the policy's role ranks as Mesh, because it is the long
// form of it (seed 004, "Empty top-level targetRef").
func topLevelRank(p *Policy) int {
	ref := p.Target
	if saysHome(p) {
		return rankMesh
	}
	switch ref.KindOrMesh() {
	case resources.KindMesh:
		return rankMesh
	case resources.KindDataplane:
		switch {
		case ref.SectionName != "":
			return rankDataplaneSection
		case ref.Name != "":
			return rankDataplaneByName
		}
		return rankDataplaneByLabels
	case resources.KindMeshSubset:
		return rankMeshSubset
	case resources.KindMeshGateway:
		return rankMeshGateway
	case resources.KindMeshService:
		return rankMeshService
	}
	return rankMeshServiceSubset
}

// saysHome reports whether the target of a consumer's or workload owner's policy is exactly the set of proxies that the
// role reaches.
func saysHome(p *Policy) bool {
	if p.Role != resources.RoleConsumer && p.Role != resources.RoleWorkloadOwner {
		return false
	}
	ref, home := p.Target, map[string]string{resources.LabelZone: p.zone, resources.LabelNamespace: p.namespace}
	switch ref.KindOrMesh() {
	case resources.KindDataplane:
		return ref.Name == "" && ref.SectionName == "" && maps.Equal(ref.Labels, home)
	case resources.KindMeshSubset:
		return ref.SectionName == "" && len(ref.Labels) == 0 && maps.Equal(ref.Tags, home)
	}
	return false
}
