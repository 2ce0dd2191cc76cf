package matching

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// addTagged adds the rules for what the proxy's outbounds name by tags, and for the routes there.
func (b *toBuilder) addTagged(out *ToRules, tagged map[ResourceKey]*Tagged, proxy *Proxy) {
	for key, t := range tagged {
		at := b.ofTagged(t, proxy)
		out.ResourceRules[key] = b.foldAt(key, at)
		if t.Same == nil {
			continue
		}
		for route := range b.named {
			if slices.ContainsFunc(b.parentsOf(route), func(p ResourceKey) bool { return p.Whole() == t.Same.Key() }) {
				own := slices.Concat(at, b.named[route])
				slices.Sort(own)
				out.RouteRules[RouteKey{route, key}] = b.foldAt(route, slices.Compact(own))
			}
		}
	}
}

// ofTagged returns the positions of the items for tags, in order, except those for the mesh: those that name no more
// tags, and those for the MeshService of the same Dataplanes. Source: seed 002, "Context and Problem Statement".
func (b *toBuilder) ofTagged(t *Tagged, proxy *Proxy) []int {
	var at []int
	have := tagSubset(&resources.TargetRef{Kind: resources.KindMeshSubset, Tags: t.Tags})
	for i, it := range b.items {
		if b.real[i] || it.ref.KindOrMesh() == resources.KindMesh ||
			it.policy.Role == resources.RoleProducer && !sameHome(it.policy, proxy) {
			continue
		}
		if s, ok := toSubset(it.ref); ok && s.covers(have) {
			at = append(at, i)
		}
	}
	if t.Same != nil {
		key := t.Same.Key()
		at = append(at, b.named[key]...)
		if len(t.Same.ports) == 1 {
			key.Section = t.Same.ports[0].section()
			at = append(at, b.named[key]...)
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}
