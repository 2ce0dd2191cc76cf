package inspect

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// permissionRule is one rule that results from permissions on an inbound.
type permissionRule struct {
	*matching.Rule
	Place
	policy *resources.Resource
}

// isPermission reports whether package rbac judges resources of the type together.
func isPermission(t resources.Type) bool {
	return t == resources.TypeMeshTrafficPermission || t == resources.TypeTrafficTarget
}

// permissionsOn returns the rules of one type that an inbound enforces, and the warnings about them. Their places count
// the rules of all types.
func (a *asked) permissionsOn(in *matching.InboundPort, t resources.Type) ([]permissionRule, []string) {
	rules := matching.Inbound(a.proxy, in, a.policies)
	byKRI := map[resources.KRI]*resources.Resource{}
	for _, p := range a.policies {
		byKRI[p.KRI] = p.Resource
	}
	var out []permissionRule
	for i := range rules.Items {
		r := &rules.Items[i]
		rule := permissionRule{Rule: r, Place: Place{RuleIndex: r.Index, Position: i + 1}, policy: byKRI[r.Origin]}
		if i > 0 && r.Order != nil && rules.Items[i-1].Order != nil {
			rule.DecidedBy = matching.Why(*rules.Items[i-1].Order, *r.Order)
		}
		if rule.policy.Type == t && !a.left.out(rule.policy) {
			out = append(out, rule)
		}
	}
	var warnings []matching.Warning
	for _, w := range slices.Concat(rules.Warnings, rbac.Warnings(rules, in.Protocol)) {
		if d, ok := resources.LookupShort(w.Policy.Short); ok && d.Type == t {
			warnings = append(warnings, w)
		}
	}
	texts := a.appendTexts(nil, warnings)
	if t == resources.TypeMeshTrafficPermission && a.left.reader == nil { // they concern all policies together
		texts = append(texts, rbac.HandshakeWarnings(rules, in)...)
	}
	return out, texts
}
