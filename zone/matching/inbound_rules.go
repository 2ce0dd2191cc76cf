package matching

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// InboundRules holds the confs of one policy type for the requests that one inbound receives. The first matching rule
// applies.
type InboundRules struct {
	Items    []InboundRule
	Warnings []Warning
}

// InboundRule is the merged conf for the requests that satisfy one match.
type InboundRule struct {
	// Match is canonical JSON; nil for every request.
	Match json.RawMessage
	// Conf is canonical JSON.
	Conf json.RawMessage
	// Origins are the merged items, in merge order.
	Origins []Origin
}

// InboundConfs computes the rules of one policy type, other than MeshTrafficPermission (see Inbound), for an inbound.
// It concatenates the `rules` of all policies that select the inbound, in the order of Compare. It merges items with
// equal matches into the highest of their places, turns each match into a rule of its own, and sorts the more specific
// first. Among equally specific rules, those of the policy that would win a merge come first, and within a policy the
// first. If the type reads `from` as `rules`, items of `from` for everyone count as items without matches. Source: seed
// 000, "Problem 2", merging behaviour.
func InboundConfs(in InboundInput) InboundRules {
	selecting, warnings := enforced(in.Type, in.Policies,
		func(p *Policy) bool { return SelectsInbound(p, in.Proxy, in.Inbound) })
	out := InboundRules{Warnings: warnings}
	var items []*item
	for _, p := range selecting {
		own, unread := asRules(p)
		items = append(items, own...)
		out.Warnings = append(out.Warnings, unread...)
	}
	sortItems(items)
	for _, group := range groupByMatches(items) {
		conf, origins := mergeItems(group)
		if len(group[0].matches) == 0 {
			out.Items = append(out.Items, InboundRule{Conf: conf, Origins: origins})
		}
		for _, m := range group[0].matches {
			out.Items = append(out.Items, InboundRule{Match: json.RawMessage(m), Conf: conf, Origins: origins})
		}
	}
	sortByMatch(out.Items, func(r *InboundRule) json.RawMessage { return r.Match })
	return out
}

// asRules returns the items of `rules`, and those of `from` with the same meaning.
func asRules(p *Policy) ([]*item, []Warning) {
	var out []*item
	for i := range p.items.rules {
		out = append(out, &p.items.rules[i])
	}
	var warnings []Warning
	if !p.Resource.Descriptor().Policy.FromAsRules {
		return out, nil
	}
	for i := range p.items.from {
		it := &p.items.from[i]
		if it.ref.KindOrMesh() == resources.KindMesh {
			out = append(out, it)
			continue
		}
		warnings = append(warnings, fromByTags(it))
	}
	return out, warnings
}

// groupByMatches groups items with equal matches. Each group is in merge order. The groups are in the order of their
// highest items: later policies first, and within a policy earlier items.
func groupByMatches(sorted []*item) [][]*item {
	groups := map[string][]*item{}
	for _, it := range sorted {
		key := strings.Join(it.matches, "\n")
		groups[key] = append(groups[key], it)
	}
	var out [][]*item
	place := func(it *item) {
		key := strings.Join(it.matches, "\n")
		if g, ok := groups[key]; ok {
			out = append(out, g)
			delete(groups, key)
		}
	}
	for end := len(sorted); end > 0; {
		start := end - 1
		for start > 0 && sorted[start-1].policy == sorted[end-1].policy {
			start--
		}
		for _, it := range sorted[start:end] {
			place(it)
		}
		end = start
	}
	return out
}

// canonicalMatches returns the set of matches in canonical form, sorted. It is empty if one of them holds for every
// request.
func canonicalMatches(matches []json.RawMessage) []string {
	out := make([]string, 0, len(matches))
	for _, raw := range matches {
		v, err := decodeConf(raw)
		if err != nil { // part of a spec that decoded, so it is JSON
			continue
		}
		if m, ok := v.(map[string]any); ok && len(m) == 0 {
			return nil
		}
		out = append(out, string(encodeConf(v)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
