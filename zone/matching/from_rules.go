package matching

import "github.com/causeway-mesh/causeway/resources"

// FromRules are the confs of one policy type for the traffic that one inbound receives, by the tags of clients.
type FromRules struct {
	// Rules are most specific first.
	Rules []SubsetRule
	// Warnings are policies, and combinations of tags, that take no effect.
	Warnings []Warning
}

// InboundInput is what From and InboundConfs work on.
type InboundInput struct {
	Type    resources.Type
	Proxy   *Proxy
	Inbound *InboundPort
	// Policies may be of any types and in any order; those that do not select the inbound are passed over.
	Policies []*Policy
}

// From computes the rules that the `from` lists of one policy type make for an inbound: the items of all policies that
// select it, in the order of Compare, merged for each combination of tags. For MeshTrafficPermission they are for
// showing: what is enforced is Inbound's. Source: seed 002, "Migration"; kuma-wire, section 8.5.
func From(in InboundInput) FromRules {
	selecting, warnings := enforced(in.Type, in.Policies, func(p *Policy) bool {
		return len(p.items.from) > 0 && SelectsInbound(p, in.Proxy, in.Inbound)
	})
	var sorted []*item
	for _, p := range selecting {
		for i := range p.items.from {
			sorted = append(sorted, &p.items.from[i])
		}
	}
	sortItems(sorted)
	items := make([]subsetItem, len(sorted))
	for i, it := range sorted {
		items[i] = subsetItem{subset: tagSubset(it.ref), item: it}
	}
	rules, problem := subsetRules(items)
	if problem != "" {
		last := sorted[len(sorted)-1]
		warnings = append(warnings, Warning{Policy: last.policy.KRI, Field: "from", Text: problem})
	}
	return FromRules{Rules: rules, Warnings: warnings}
}
