package matching

import "github.com/causeway-mesh/causeway/resources"

// FromRules holds the confs of one policy type for the traffic that one inbound receives, by the tags of clients.
type FromRules struct {
	// Rules are sorted, most specific first.
	Rules []SubsetRule
	// Warnings report policies, and combinations of tags, that have no effect.
	Warnings []Warning
}

// InboundInput is the input of From and InboundConfs.
type InboundInput struct {
	Type    resources.Type
	Proxy   *Proxy
	Inbound *InboundPort
	// Policies may be of any types and in any order. Those that do not select the inbound are ignored.
	Policies []*Policy
}

// From computes the rules that the `from` lists of one policy type yield for an inbound: it merges the items of all
// policies that select it, in the order of Compare, for each combination of tags. For MeshTrafficPermission, they are
// for display only: Inbound returns the enforced rules. Source: seed 002, "Migration"; Kuma's rules by tags
// (fromRules).
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
