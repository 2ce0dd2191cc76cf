package matching

import (
	"encoding/json"
	"fmt"
	"slices"
)

// RouteTable holds the routes of one type (MeshHTTPRoute or MeshTCPRoute) that apply to a proxy. It is not safe for concurrent
// use.
type RouteTable struct {
	builder *toBuilder
	// tagged is ToInput.Tagged.
	tagged map[ResourceKey]*Tagged
	proxy  *Proxy
	// Warnings report references that resolve to nothing, and routes that have no effect.
	Warnings []Warning

	// known holds the results of For, by the positions of items.
	known map[string][]RouteRule
}

// RouteRule defines the handling of the requests that satisfy one match. Only the first matching rule of a list
// applies, so every request belongs to one route, and the policies that name that route apply to it (ToRules.ForRoute).
type RouteRule struct {
	// Route is the route as other policies refer to it.
	Route ResourceKey
	// Origin is the item of the route's `to`.
	Origin Origin
	// Hostnames are canonical JSON, nil if the route has none.
	Hostnames json.RawMessage
	// Match is canonical JSON; nil for every request.
	Match json.RawMessage
	// Conf is canonical JSON: filters and backends.
	Conf json.RawMessage
}

// NewRouteTable collects the routes that select the proxy. in.Type is the type of the routes.
func NewRouteTable(in ToInput) *RouteTable {
	selecting, warnings := enforced(in.Type, in.Policies, func(p *Policy) bool {
		return len(p.items.to) > 0 && !onGateway(p) && Selects(p, in.Proxy)
	})
	b := newToBuilder(in.Destinations, in.Proxy.Key.Mesh)
	warnings = append(warnings, b.read(selecting)...)
	return &RouteTable{builder: b, tagged: in.Tagged, proxy: in.Proxy, Warnings: warnings}
}

// For returns the rules for a service, or for one of its sections, in the order in which the proxy tries them: more
// specific matches first, among equals those of the route that comes last in the order of Compare. Of rules with the
// same match, it returns only the first. Nothing is merged: only one rule may match each request (seed 000, "Problem
// 2"). Services with the same items, as those that a route selects by labels, share the result: callers must not change it.
func (t *RouteTable) For(service ResourceKey) []RouteRule {
	b := t.builder
	at := slices.Concat(b.onMesh, b.named[service])
	if tagged := t.tagged[service]; tagged != nil {
		at = append(at, b.ofTagged(tagged, t.proxy)...)
	}
	if service.Section != "" {
		at = append(at, b.named[service.Whole()]...)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	if len(at) == 0 {
		return nil
	}
	text := fmt.Sprint(at)
	if rules, known := t.known[text]; known {
		return rules
	}
	slices.Reverse(at)
	var rules []RouteRule
	for _, i := range at {
		rules = append(rules, routeRules(b.items[i])...)
	}
	sortByMatch(rules, func(r *RouteRule) json.RawMessage { return r.Match })
	rules = firstOfEach(rules)
	if t.known == nil {
		t.known = map[string][]RouteRule{}
	}
	t.known[text] = rules
	return rules
}

// routeRules returns the rules of one item, one for each match. It skips malformed rules.
func routeRules(it *item) []RouteRule {
	conf, _ := it.conf.(map[string]any)
	k := it.policy.Resource.Key
	base := RouteRule{Route: ResourceKey{Type: k.Type, Mesh: k.Mesh, Namespace: k.Namespace, Name: k.Name},
		Origin: it.origin()}
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

// firstOfEach keeps the first rule for each combination of match and hostnames: the others are unreachable.
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
