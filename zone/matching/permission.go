package matching

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// Rule is one item of a MeshTrafficPermission's effective rules, or one match that a TrafficTarget allows.
type Rule struct {
	// Origin is the policy. Its string form is the name of Envoy's RBAC action.
	Origin resources.KRI
	// Index is the item's position among the policy's effective rules.
	Index int
	Conf  resources.PermissionConf
	// Closed means that the item could not be read. It may have held a deny, so it denies everyone. Conf is empty.
	Closed bool
	// Headers must all match too for an entry of `allow` to match. Only rules of TrafficTargets have any.
	Headers []HeaderMatch
	// Order is the rule's position among those of other policies; nil in a rule that was built without one.
	Order *Order
	// Made is shared by all copies of the rule, and may be nil. Code that changes another field of a copy must set Made
	// to nil.
	Made *Made
}

// Warning reports that a policy has a problem, or an effect that its author may not expect.
type Warning struct {
	Policy resources.KRI
	// Field is a path in the policy's explicit form, such as `rules[0].default.allow[1].path`; empty for the whole
	// policy.
	Field string
	// Text is lower-case and states the consequence.
	Text string
}

// String returns the KRI, field and text, for logs and people.
func (w Warning) String() string {
	if w.Field == "" {
		return w.Policy.String() + ": " + w.Text
	}
	return w.Policy.String() + ": " + w.Field + ": " + w.Text
}

// readPermissions decodes the policy's rules. Decoding is strict: a field that this version does not know may narrow an
// allow or widen a deny. An item with such a field is closed, so that it is never more permissive than intended. The
// older form, `from`, is evaluated for all policies of an inbound together (fromPermissions).
func (p *Policy) readPermissions(spec *resources.Policy) {
	decoded := resources.PermissionRules(p.Resource)
	for i, rule := range spec.EffectiveRules() {
		field := fmt.Sprintf("rules[%d]", i)
		if len(rule.Matches) > 0 {
			p.close(i, field+".matches is not valid in a permission, so the rule denies everybody")
			continue
		}
		if err := decoded[i].Err; err != nil {
			p.close(i, fmt.Sprintf("%s.default does not decode, so the rule denies everybody: %v", field, err))
			continue
		}
		p.rules = append(p.rules, Rule{Origin: p.KRI, Index: i, Conf: decoded[i].Conf, Order: &p.order, Made: &Made{}})
	}
}

func (p *Policy) close(index int, text string) {
	p.rules = append(p.rules, Rule{Origin: p.KRI, Index: index, Closed: true, Order: &p.order, Made: &Made{}})
	p.problems = append(p.problems, Warning{Policy: p.KRI, Text: text})
}
