package matching

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/causeway-mesh/causeway/resources"
)

// toBuilder turns the sorted items of `to` into rules. A position is an item's index in that order.
type toBuilder struct {
	destinations *Destinations
	mesh         string
	// route means that the confs are routes, whose rules add up instead of replacing one another.
	route bool
	// only is ToInput.Only.
	only map[ResourceKey]bool
	// gateway is ToInput.Gateway.
	gateway map[ResourceKey][]ResourceKey
	items   []*item
	// real reports, for each item, whether it names a resource, so that its name is not a service tag.
	real []bool
	// named holds the positions of the items that name a destination or a section of it.
	named map[ResourceKey][]int
	found map[ResourceKey]*Destination
	// sections holds the sections that items name, by service.
	sections map[ResourceKey][]ResourceKey
	// onMesh holds the positions of the items for the mesh. prefixes[n] is the merged conf of the first n of them.
	onMesh   []int
	prefixes []any
}

func newToBuilder(x *Destinations, mesh string) *toBuilder {
	return &toBuilder{
		destinations: x, mesh: mesh, named: map[ResourceKey][]int{}, found: map[ResourceKey]*Destination{},
		sections: map[ResourceKey][]ResourceKey{},
	}
}

// read sorts the items of the policies and resolves their references. It returns a warning for each that resolves to
// nothing.
func (b *toBuilder) read(policies []*Policy) []Warning {
	for _, p := range policies {
		for i := range p.items.to {
			b.items = append(b.items, &p.items.to[i])
		}
	}
	sortItems(b.items)
	b.real = make([]bool, len(b.items))
	var warnings []Warning
	known := map[reference]resolved{}
	for at, it := range b.items {
		if it.ref.KindOrMesh() == resources.KindMesh {
			b.onMesh = append(b.onMesh, at)
			continue
		}
		if !IsDestination(resources.Type(it.ref.Kind)) {
			continue // only the legacy rules support subsets
		}
		targets, problem := b.resolve(it, known)
		if problem != "" {
			warnings = append(warnings, it.referenceProblem(problem))
		}
		b.real[at] = len(targets) > 0 || b.hashed(it)
		for _, t := range targets {
			b.name(t, at)
		}
	}
	return warnings
}

// reference is everything that the meaning of a reference by labels depends on.
type reference struct {
	from                           Referrer
	kind, name, namespace, section string
	labels                         string
}

// resolved is the meaning of a reference.
type resolved struct {
	targets []Target
	problem string
}

// resolve returns the targets of an item. Items with the same labels, which may mean many services, share them.
func (b *toBuilder) resolve(it *item, known map[reference]resolved) ([]Target, string) {
	from, ref := it.policy.Referrer(), it.ref
	if len(ref.Labels) == 0 {
		return b.destinations.resolveContained(from, ref)
	}
	of := reference{from, ref.Kind, ref.Name, ref.Namespace, ref.SectionName, fmt.Sprintf("%q", ref.Labels)} // sorted
	out, ok := known[of]
	if !ok {
		out.targets, out.problem = b.destinations.resolveContained(from, ref)
		known[of] = out
	}
	return out.targets, out.problem
}

func (b *toBuilder) name(t Target, at int) {
	key := t.Key()
	if _, ok := b.found[key]; !ok {
		b.found[key] = t.Destination
		if t.Section != "" {
			b.sections[key.Whole()] = append(b.sections[key.Whole()], key)
		}
	}
	b.named[key] = append(b.named[key], at)
}

// foldMesh merges the items for the mesh once, because most rules begin with them.
func (b *toBuilder) foldMesh() {
	b.prefixes = make([]any, 1, len(b.onMesh)+1)
	b.prefixes[0] = map[string]any{}
	for i, at := range b.onMesh {
		b.prefixes = append(b.prefixes, b.merge(b.prefixes[i], b.items[at]))
	}
}

func (b *toBuilder) merge(conf any, it *item) any {
	if b.route {
		return mergeRoutes(conf, it.conf)
	}
	return mergePatch(conf, it.conf)
}

// fold merges, in order, the items for the mesh and those that name one of the keys.
func (b *toBuilder) fold(rule ResourceKey, includers ...ResourceKey) *ResourceRule {
	own := b.named[rule]
	if len(includers) > 0 {
		own = slices.Clone(own)
		for _, k := range includers {
			own = append(own, b.named[k]...)
		}
		slices.Sort(own)
		own = slices.Compact(own)
	}
	return b.foldAt(rule, own)
}

// foldAt merges, in order, the items for the mesh and those at the positions.
func (b *toBuilder) foldAt(rule ResourceKey, own []int) *ResourceRule {
	first := len(b.items)
	if len(own) > 0 {
		first = own[0]
	}
	shared := sort.SearchInts(b.onMesh, first)
	conf := b.prefixes[shared]
	out := &ResourceRule{Key: rule, Destination: b.found[rule], Origins: make([]Origin, 0, len(own)+len(b.onMesh))}
	for _, at := range b.onMesh[:shared] {
		out.Origins = append(out.Origins, b.items[at].origin())
	}
	for mesh := b.onMesh[shared:]; len(own)+len(mesh) > 0; {
		var it *item
		if len(mesh) == 0 || len(own) > 0 && own[0] < mesh[0] {
			it, own = b.items[own[0]], own[1:]
		} else {
			it, mesh = b.items[mesh[0]], mesh[1:]
		}
		conf = b.merge(conf, it)
		out.Origins = append(out.Origins, it.origin())
	}
	out.Conf = encodeConf(conf)
	return out
}

// resourceRules returns one rule for each key that an item names, and one for the mesh. A section is included in its
// service. A route is included in its services, or in the section that it is for and that section's service. Source:
// seed 002, "New approach", includes.
func (b *toBuilder) resourceRules() map[ResourceKey]*ResourceRule {
	out := make(map[ResourceKey]*ResourceRule, len(b.named)+1)
	for key := range b.named {
		if !b.wanted(key) {
			continue
		}
		var includers []ResourceKey
		if key.Section != "" {
			includers = append(includers, key.Whole())
		}
		for _, parent := range b.parentsOf(key) {
			includers = append(includers, parent)
			if parent.Section != "" {
				includers = append(includers, parent.Whole())
			}
		}
		out[key] = b.fold(key, includers...)
	}
	if len(b.onMesh) > 0 {
		out[meshKey(b.mesh)] = b.fold(meshKey(b.mesh))
	}
	return out
}

// routeRules returns the rules of named routes on each of their services. They differ from those of resourceRules if a
// route has more than one service: an item for one of them, above all a producer's, must not change the others.
func (b *toBuilder) routeRules() map[RouteKey]*ResourceRule {
	out := map[RouteKey]*ResourceRule{}
	for route := range b.named {
		for _, parent := range b.parentsOf(route) {
			if !b.wanted(parent) {
				continue
			}
			out[RouteKey{route, parent}] = b.foldRoute(route, parent)
			if parent.Section != "" {
				continue
			}
			for _, section := range b.sections[parent] {
				out[RouteKey{route, section}] = b.foldRoute(route, section)
			}
		}
	}
	return out
}

// wanted reports whether the proxy sends to the service, to the section's service, or to a service of the route.
func (b *toBuilder) wanted(key ResourceKey) bool {
	if b.only == nil || b.only[key.Whole()] {
		return true
	}
	return slices.ContainsFunc(b.parentsOf(key),
		func(parent ResourceKey) bool { return b.only[parent.Whole()] })
}

// parentsOf returns the services whose traffic a route handles: those that it is for, or, for a route of the gateway
// that the proxy serves, those that it sends to.
func (b *toBuilder) parentsOf(route ResourceKey) []ResourceKey {
	if to := b.gateway[route]; len(to) > 0 {
		return to
	}
	return b.destinations.parents[route]
}

func (b *toBuilder) foldRoute(route, service ResourceKey) *ResourceRule {
	if service.Section == "" {
		return b.fold(route, service)
	}
	return b.fold(route, service, service.Whole())
}

// legacy returns the rules for destinations that are only a service tag. A tag identifies no zone or namespace, so a
// producer's item for one applies only to proxies of the producer's own home.
func (b *toBuilder) legacy(proxy *Proxy, warnings []Warning) ([]SubsetRule, []Warning) {
	if b.route {
		return nil, warnings // routes do not apply to tags: backends are resources
	}
	var items []subsetItem
	for at, it := range b.items {
		if b.real[at] {
			continue
		}
		if it.policy.Role == resources.RoleProducer && !sameHome(it.policy, proxy) {
			continue
		}
		if s, ok := toSubset(it.ref); ok {
			items = append(items, subsetItem{subset: s, item: it})
		}
	}
	rules, problem := subsetRules(items)
	if problem != "" {
		warnings = append(warnings, Warning{Policy: items[len(items)-1].item.policy.KRI, Field: "to", Text: problem})
	}
	return rules, warnings
}

// hashed reports whether the item's name is that of a copy, which cannot be a service tag.
func (b *toBuilder) hashed(it *item) bool {
	at := nameKey{resources.Type(it.ref.Kind), b.mesh, it.ref.Name}
	return len(b.destinations.objects[at]) > 0
}

// toSubset returns the meaning of a reference as tags of a destination.
func toSubset(ref *resources.TargetRef) (subset, bool) {
	switch ref.KindOrMesh() {
	case resources.KindMesh:
		return nil, true
	case resources.KindMeshService:
		if ref.Name == "" || ref.SectionName != "" || len(ref.Labels) > 0 {
			return nil, false
		}
		return subset{{tagService, ref.Name}}, true
	case resources.KindMeshSubset, resources.KindMeshServiceSubset:
		return tagSubset(ref), true
	}
	return nil, false
}

// tagSubset returns the meaning of a reference as tags of a client or a destination. It is empty only for everyone.
func tagSubset(ref *resources.TargetRef) subset {
	var s subset
	for k, v := range ref.Tags {
		s = append(s, label{k, v})
	}
	switch ref.KindOrMesh() {
	case resources.KindMesh, resources.KindMeshSubset:
	default: // an unknown kind is a name too, rather than everyone
		s = append(s, label{tagService, ref.Name})
	}
	slices.SortFunc(s, compareLabels)
	return slices.Compact(s)
}

func compareLabels(a, b label) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value))
}

func isRouteType(t resources.Type) bool {
	d, ok := resources.Lookup(t)
	return ok && d.Policy != nil && d.Policy.Route
}
