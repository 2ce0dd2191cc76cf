package matching

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/causeway-mesh/causeway/resources"
)

// Rule is one item of a MeshTrafficPermission's effective rules, or one match that a TrafficTarget allows.
type Rule struct {
	// Origin is the policy; its string is the name of Envoy's action.
	Origin resources.KRI
	// Index is the item's place among the policy's effective rules.
	Index int
	Conf  resources.PermissionConf
	// Closed: the item could not be understood, and since it may have held a deny, it denies everybody. Conf is empty.
	Closed bool
	// Headers must all hold too for an entry of `allow` to match. Only rules of TrafficTargets have some.
	Headers []HeaderMatch
	// Order is the rule's place among those of other policies; nil in a rule that was made without one.
	Order *Order
	// Made is shared by all copies of the rule. Who changes one of the other fields of a copy takes it away; it may be nil.
	Made *Made
}

// Warning is one thing that is wrong, or not as its writer may think, with a policy.
type Warning struct {
	Policy resources.KRI
	// Field is a path as in the policy's explicit form, `rules[0].default.allow[1].path`; empty for the whole policy.
	Field string
	// Text is lower-case and says what happens because of it.
	Text string
}

// String is for logs and for people: KRI, field and text.
func (w Warning) String() string {
	if w.Field == "" {
		return w.Policy.String() + ": " + w.Text
	}
	return w.Policy.String() + ": " + w.Field + ": " + w.Text
}

// readPermissions decodes the policy's rules. Decoding is strict: a field that this version does not know may narrow
// an allow or widen a deny, so an item that has one is closed rather than read as more permissive than it is. The older
// form, `from`, is judged for all policies of an inbound together (fromPermissions).
func (p *Policy) readPermissions(spec *resources.Policy) {
	for i, rule := range spec.EffectiveRules() {
		field := fmt.Sprintf("rules[%d]", i)
		if len(rule.Matches) > 0 {
			p.close(i, field+".matches is not understood in a permission, so the rule denies everybody")
			continue
		}
		conf, err := decodePermission(rule.Default)
		if err != nil {
			p.close(i, fmt.Sprintf("%s.default does not decode, so the rule denies everybody: %v", field, err))
			continue
		}
		p.rules = append(p.rules, Rule{Origin: p.KRI, Index: i, Conf: conf, Order: &p.order, Made: &Made{}})
	}
}

func (p *Policy) close(index int, text string) {
	p.rules = append(p.rules, Rule{Origin: p.KRI, Index: index, Closed: true, Order: &p.order, Made: &Made{}})
	p.problems = append(p.problems, Warning{Policy: p.KRI, Text: text})
}

func decodePermission(raw json.RawMessage) (resources.PermissionConf, error) {
	var conf resources.PermissionConf
	if len(raw) == 0 {
		return conf, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&conf); err != nil {
		return resources.PermissionConf{}, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return resources.PermissionConf{}, fmt.Errorf("more than one value")
	}
	return conf, nil
}
