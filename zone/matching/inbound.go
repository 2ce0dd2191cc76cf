package matching

import (
	"slices"
)

// Rules holds the permissions of one inbound, in order and not merged.
type Rules struct {
	Items []Rule
	// Warnings report the problems of the policies that select the inbound, and which of them are not enforced.
	Warnings []Warning
}

// Inbound returns the permissions of one inbound: all effective rules of the policies that select it, in the order of
// Compare, followed by the rules of their `from` lists. It ignores policies of types other than MeshTrafficPermission
// and TrafficTarget. The order of policies does not matter. A policy labelled `kuma.io/effect: shadow` yields a warning
// and no rules. Source: seed 000, "Algorithm".
func Inbound(proxy *Proxy, in *InboundPort, policies []*Policy) Rules {
	selecting := make([]*Policy, 0, len(policies))
	for _, p := range policies {
		if isPermission(p.Resource.Type) && SelectsInbound(p, proxy, in) {
			selecting = append(selecting, p)
		}
	}
	sortPolicies(selecting)
	var out Rules
	size := 0
	for _, p := range selecting {
		size += max(len(p.rules), len(p.traffic))
	}
	if size > 0 {
		out.Items = make([]Rule, 0, size)
	}
	holding := selecting[:0]
	for _, p := range selecting {
		if !p.Enforced() {
			out.Warnings = append(out.Warnings, p.notEnforced())
			continue
		}
		holding = append(holding, p)
		out.Items = append(out.Items, p.rulesOn(in)...)
		out.Warnings = append(out.Warnings, p.problems...)
	}
	rules, warnings := fromPermissions(holding)
	out.Items = append(out.Items, rules...)
	out.Warnings = append(out.Warnings, warnings...)
	return out
}

func sortPolicies(policies []*Policy) {
	slices.SortFunc(policies, func(a, b *Policy) int { return Compare(a.order, b.order) })
}
