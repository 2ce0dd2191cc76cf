package matching

import (
	"encoding/json"
	"slices"
)

// RouteTable holds the routes of one type (MeshHTTPRoute or MeshTCPRoute) that apply to a proxy. Nobody changes a
// RouteTable once it is made.
type RouteTable struct {
	builder *toBuilder
	// Warnings are references that resolve to nothing, and routes that take no effect.
	Warnings []Warning
}

// RouteRule is what happens to the requests of one match. The first rule of a list whose match holds is the only one that
// counts, so every request belongs to one route: policies that name that route hold for it (ToRules.ForRoute).
type RouteRule struct {
	// Route is the route as other policies refer to it.
	Route ResourceKey
	// Origin is the item of the route's `to`.
	Origin Origin
	// Hostnames are canonical JSON, nil where the route gives none.
	Hostnames json.RawMessage
	// Match is canonical JSON; nil for every request.
	Match json.RawMessage
	// Conf is canonical JSON: filters and backends.
	Conf json.RawMessage
}

// NewRouteTable collects the routes that select the proxy; in.Type is that of the routes.
func NewRouteTable(in ToInput) *RouteTable {
	selecting, warnings := enforced(in.Type, in.Policies, func(p *Policy) bool {
		return len(p.items.to) > 0 && Selects(p, in.Proxy)
	})
	b := newToBuilder(in.Destinations, in.Proxy.Key.Mesh)
	warnings = append(warnings, b.read(selecting)...)
	return &RouteTable{builder: b, Warnings: warnings}
}

// For returns the rules for a service, or for one of its sections, in the order in which they are tried: more specific
// matches first, among equals those of the route that comes last in the order of Compare. Of rules with the same match
// only the first is there. Nothing is merged: only one rule may match each request (seed 000, "Problem 2").
func (t *RouteTable) For(service ResourceKey) []RouteRule {
	b := t.builder
	at := slices.Concat(b.onMesh, b.named[service])
	if service.Section != "" {
		at = append(at, b.named[service.Whole()]...)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	slices.Reverse(at)
	var rules []RouteRule
	for _, i := range at {
		rules = append(rules, routeRules(b.items[i])...)
	}
	sortByMatch(rules, func(r *RouteRule) json.RawMessage { return r.Match })
	return firstOfEach(rules)
}

// routeRules are the rules of one item, one for each match. What does not have the form of a rule is left out.
func routeRules(it *item) []RouteRule {
	conf, _ := it.conf.(map[string]any)
	k := it.policy.Resource.Key
	base := RouteRule{Route: ResourceKey{Type: k.Type, Mesh: k.Mesh, Namespace: k.Namespace, Name: k.Name}, Origin: it.origin()}
	if h := listOf(conf, "hostnames"); len(h) > 0 {
		base.Hostnames = encodeConf(h)
	}
	var out []RouteRule
	for _, r := range listOf(conf, "rules") {
		fields, ok := r.(map[string]any)
		if !ok {
			continue
		}
		rule := base
		rule.Conf = encodeConf(mergePatch(map[string]any{}, fields["default"]))
		matches := listOf(fields, "matches")
		if len(matches) == 0 {
			out = append(out, rule)
		}
		for _, m := range matches {
			rule.Match = nil
			if fields, ok := m.(map[string]any); !ok || len(fields) > 0 {
				rule.Match = encodeConf(m)
			}
			out = append(out, rule)
		}
	}
	return out
}

// firstOfEach keeps the first rule for the same match and hostnames: others are never reached.
func firstOfEach(rules []RouteRule) []RouteRule {
	seen := map[[2]string]bool{}
	return slices.DeleteFunc(rules, func(r RouteRule) bool {
		key := [2]string{string(r.Hostnames), string(r.Match)}
		if seen[key] {
			return true
		}
		seen[key] = true
		return false
	})
}
