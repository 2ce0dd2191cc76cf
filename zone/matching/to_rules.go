package matching

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/causeway-mesh/causeway/resources"
)

// ToRules holds the confs of one policy type for the traffic that a proxy sends.
type ToRules struct {
	// Rules are for destinations that are only a `kuma.io/service` tag, most specific first.
	Rules []SubsetRule
	// ResourceRules holds the rules for the keys that policies name, and for Mesh. Use For and ForRoute, which fall
	// back. The rule of a route merges the items for all services that the route is for; ForRoute is exact for each.
	ResourceRules map[ResourceKey]*ResourceRule
	// RouteRules holds the rules for a named route on one of its services, or on one section of it.
	RouteRules map[RouteKey]*ResourceRule
	// Warnings report references that resolve to nothing, backends that no proxy sends to, and policies that have no
	// effect.
	Warnings []Warning
}

// RouteKey is a route's traffic to one service, or to one section of it.
type RouteKey struct {
	Route, Service ResourceKey
}

// ResourceRule is the merged conf for one destination. It is immutable.
type ResourceRule struct {
	Key ResourceKey
	// Destination is nil for the rule of the mesh.
	Destination *Destination
	// Conf is canonical JSON.
	Conf json.RawMessage
	// Origins are the merged items, in merge order.
	Origins []Origin

	read atomic.Pointer[readConf]
}

// ID identifies what the rule was merged from: of one type, rules with the same have the same conf and origins. It is empty
// for nil, and opaque.
func (r *ResourceRule) ID() string {
	if r == nil {
		return ""
	}
	out := make([]byte, 1, 1+16*len(r.Origins))
	for i := range r.Origins {
		out = binary.LittleEndian.AppendUint64(out, r.Origins[i].Policy.id)
		out = binary.LittleEndian.AppendUint64(out, uint64(r.Origins[i].RuleIndex))
	}
	return string(out)
}

// readConf is a conf as a caller reads it.
type readConf struct {
	conf any
	err  error
}

// ConfAs reads the rule's conf as a T, once for all callers: they must not change it.
func ConfAs[T any](r *ResourceRule) (*T, error) {
	if read := r.read.Load(); read != nil {
		if conf, is := read.conf.(*T); is {
			return conf, read.err
		}
	}
	conf := new(T)
	err := json.Unmarshal(r.Conf, conf)
	r.read.Store(&readConf{conf, err})
	return conf, err
}

// ToInput is the input of To.
type ToInput struct {
	Type  resources.Type
	Proxy *Proxy
	// Policies may be of any types and in any order. Those that do not select the proxy are ignored.
	Policies     []*Policy
	Destinations *Destinations
	// Only, unless nil, lists the services that the proxy sends to. To computes the rules only for these, their
	// sections and their routes, and for the mesh. Lookups of other services fall back to the mesh, so callers must not
	// make them.
	Only map[ResourceKey]bool
	// Gateway lists, for each route of the gateway that the proxy serves, the service ports that it sends to. Items for
	// the route then apply on the way to each of them.
	Gateway map[ResourceKey][]ResourceKey
	// Tagged holds what the proxy's outbounds name by tags, under a key of the caller's choice.
	Tagged map[ResourceKey]*Tagged
}

// To computes the rules of one policy type for the traffic that a proxy sends: it merges the items of `to` of all
// policies that select the proxy, in the order of Compare, for each destination that an item names, and for the mesh.
// Items of producers apply only to destinations of their own zone and namespace. Source: seed 002, "New approach" and
// "Sparse ResourceRules structure".
func To(in ToInput) ToRules {
	var out ToRules
	var selecting []*Policy
	selecting, out.Warnings = enforced(in.Type, in.Policies, func(p *Policy) bool {
		return len(p.items.to) > 0 && Selects(p, in.Proxy)
	})
	b := newToBuilder(in.Destinations, in.Proxy.Key.Mesh)
	out.Warnings = append(out.Warnings, b.read(selecting)...)
	for _, it := range b.items {
		out.Warnings = append(out.Warnings, in.Destinations.backendProblems(it)...)
	}
	b.route, b.only = isRouteType(in.Type), in.Only
	b.gateway = in.Gateway
	b.foldMesh()
	out.ResourceRules = b.resourceRules()
	out.RouteRules = b.routeRules()
	out.Rules, out.Warnings = b.legacy(in.Proxy, out.Warnings)
	b.addTagged(&out, in.Tagged, in.Proxy)
	return out
}

// For returns the rule for a service or for one of its sections. It falls back from the section to the service to the
// mesh, and returns nil if nothing applies. Its cost does not depend on the number of policies.
func (r *ToRules) For(service ResourceKey) *ResourceRule {
	if rule, ok := r.ResourceRules[service]; ok {
		return rule
	}
	if rule, ok := r.ResourceRules[service.Whole()]; ok {
		return rule
	}
	return r.ResourceRules[meshKey(service.Mesh)]
}

// ForRoute returns the rule for the requests that a route matches on their way to a service or to one of its sections.
// It falls back to the rule of the service or section, and returns nil if nothing applies.
func (r *ToRules) ForRoute(route, service ResourceKey) *ResourceRule {
	if rule, ok := r.RouteRules[RouteKey{route, service}]; ok {
		return rule
	}
	if rule, ok := r.RouteRules[RouteKey{route, service.Whole()}]; ok {
		return rule
	}
	return r.For(service)
}

// Complete returns one rule for the mesh, for every destination, including those that no policy names, and for every
// section that a policy names, sorted by key. It is for display (seed 002, "Inspect API"). A route that no policy names
// has the rule of its service, or of the first by key if it has several.
func (r *ToRules) Complete(x *Destinations, mesh string) []*ResourceRule {
	if len(r.ResourceRules) == 0 {
		return nil
	}
	out := slices.Collect(maps.Values(r.ResourceRules))
	for _, d := range x.sorted {
		key := d.Key()
		if _, ok := r.ResourceRules[key]; ok || key.Mesh != mesh {
			continue
		}
		rule := r.For(key)
		if parents := x.parents[key]; len(parents) > 0 {
			rule = r.ForRoute(key, parents[0])
		}
		if rule != nil {
			out = append(out, &ResourceRule{Key: key, Destination: d, Conf: rule.Conf, Origins: rule.Origins})
		}
	}
	slices.SortFunc(out, func(a, b *ResourceRule) int { return compareKeys(a.Key, b.Key) })
	return out
}
