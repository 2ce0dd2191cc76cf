package matching

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// Origin is one item of a policy that contributed to a conf.
type Origin struct {
	Policy *Policy
	// RuleIndex is the item's position in its list (`to`, `from` or the effective `rules`); zero for single-item
	// policies.
	RuleIndex int

	item *item
}

// Sets reports whether the item itself has a field of the conf.
func (o Origin) Sets(field string) bool {
	if o.item == nil {
		return false
	}
	conf, _ := o.item.conf.(map[string]any)
	_, sets := conf[field]
	return sets
}

// KRI returns the policy's KRI.
func (o Origin) KRI() resources.KRI { return o.Policy.KRI }

// item is one item of `to`, `from` or `rules`, or the one conf of a single-item policy, with its conf decoded once.
type item struct {
	policy *Policy
	index  int
	// ref is nil for an item of `rules` and for a single conf.
	ref   *resources.TargetRef
	conf  any
	order Order
	// matches is the canonical list of an item of `rules`; empty for every request.
	matches []string
}

func (i *item) origin() Origin {
	return Origin{Policy: i.policy, RuleIndex: i.index, item: i}
}

// policyItems holds the items of one policy, in the policy's order.
type policyItems struct {
	to, from, rules []item
	single          *item
	// problems report the items that do not decode, which are left out.
	problems []Warning
}

// readItems reads the lists of p. If the policy's spec does not decode, spec is nil and there are no items.
func readItems(p *Policy, spec *resources.Policy) policyItems {
	var out policyItems
	d := p.Resource.Descriptor().Policy
	if spec == nil || d == nil {
		return out
	}
	for i := range spec.To {
		out.to = out.add(out.to, p, itemSource{"to", i, &spec.To[i].TargetRef, toConf(d, &spec.To[i])})
	}
	for i := range spec.From {
		out.from = out.add(out.from, p, itemSource{"from", i, &spec.From[i].TargetRef, spec.From[i].Default})
	}
	if d.Single {
		if one := out.add(nil, p, itemSource{"default", 0, nil, spec.Default}); len(one) > 0 {
			out.single = &one[0]
		}
		return out
	}
	if p.Resource.Type != resources.TypeMeshTrafficPermission {
		out.readRules(p, spec)
	}
	return out
}

func (out *policyItems) readRules(p *Policy, spec *resources.Policy) {
	for i, rule := range spec.EffectiveRules() {
		before := len(out.rules)
		out.rules = out.add(out.rules, p, itemSource{"rules", i, nil, rule.Default})
		if len(out.rules) > before {
			out.rules[before].matches = canonicalMatches(rule.Matches)
		}
	}
}

// itemSource is an item as written in its policy.
type itemSource struct {
	list  string
	index int
	ref   *resources.TargetRef
	conf  json.RawMessage
}

func (out *policyItems) add(list []item, p *Policy, s itemSource) []item {
	conf, err := decodeConf(s.conf)
	if err != nil {
		field := fmt.Sprintf("%s[%d]", s.list, s.index)
		out.problems = append(out.problems, Warning{Policy: p.KRI, Field: field,
			Text: fmt.Sprintf("the conf does not decode and has no effect: %v", err)})
		return list
	}
	return append(list, item{policy: p, index: s.index, ref: s.ref, conf: conf, order: OrderOf(p, s.ref)})
}

// toConf returns the conf of an item of `to`. For a route, that is its hostnames and rules.
func toConf(d *resources.PolicyShape, to *resources.PolicyTo) json.RawMessage {
	if !d.Route {
		return to.Default
	}
	conf := map[string]any{}
	if len(to.Hostnames) > 0 {
		conf["hostnames"] = to.Hostnames
	}
	if len(to.Rules) > 0 {
		conf["rules"] = to.Rules
	}
	raw, err := json.Marshal(conf)
	if err != nil { // if the rules are not JSON, decoding reports it
		return to.Rules
	}
	return raw
}

// sortItems sorts items for merging: the last wins. Items of one policy with equal places keep their order.
func sortItems(items []*item) {
	slices.SortStableFunc(items, func(a, b *item) int { return Compare(a.order, b.order) })
}

// mergeItems merges the confs of sorted items.
func mergeItems(items []*item) (json.RawMessage, []Origin) {
	var merged any = map[string]any{}
	origins := make([]Origin, len(items))
	for i, it := range items {
		merged = mergePatch(merged, it.conf)
		origins[i] = it.origin()
	}
	return encodeConf(merged), origins
}

// enforced returns the policies of type t that `selects` accepts and that take effect, with a warning for each that is
// selected but not enforced, and for each item that does not decode.
func enforced(t resources.Type, policies []*Policy, selects func(*Policy) bool) ([]*Policy, []Warning) {
	var out []*Policy
	var warnings []Warning
	for _, p := range policies {
		if p.Resource.Type != t || !selects(p) {
			continue
		}
		if !p.Enforced() {
			warnings = append(warnings, p.notEnforced())
			continue
		}
		out = append(out, p)
		warnings = append(warnings, p.items.problems...)
	}
	sortPolicies(out)
	return out, warnings
}

func (p *Policy) notEnforced() Warning {
	return Warning{Policy: p.KRI, Text: "has the label " + resources.LabelEffect + ": " + effectShadow +
		" and is not enforced"}
}
