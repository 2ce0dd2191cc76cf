package matching

import (
	"slices"
)

// Rules are the permissions of one inbound, in order and not merged.
type Rules struct {
	Items []Rule
	// Warnings are what is wrong with the policies that select the inbound, and which of them are not enforced.
	Warnings []Warning
}

// Inbound gives the permissions of one inbound: of those policies that select it, in the order of Compare, all
// effective rules, one after the other, and then what their `from` lists come to. Policies of other types than
// MeshTrafficPermission and TrafficTarget are passed over; the order of policies does not matter. A policy labelled
// `kuma.io/effect: shadow` adds a warning and no rule.
// Source: seed 000, "Algorithm"; design, section 5.
func Inbound(proxy *Proxy, in *InboundPort, policies []*Policy) Rules {
	var selecting []*Policy
	for _, p := range policies {
		if isPermission(p.Resource.Type) && SelectsInbound(p, proxy, in) {
			selecting = append(selecting, p)
		}
	}
	sortPolicies(selecting)
	var out Rules
	var holding []*Policy
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
