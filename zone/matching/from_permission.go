package matching

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// anySpiffeID is the allow entry for every client with an identity: certificates of the mesh carry no tags, but each
// has a SPIFFE ID.
var anySpiffeID = resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchPrefix,
	Value: "spiffe://"}}

// fromPermissions turns the `from` lists of permissions into rules that can be evaluated by SPIFFE IDs, which carry no
// tags. The policies must select an inbound and be enforced. For kind Mesh, the last action in the order wins. An Allow
// by tags adds no access. Permissions fail closed: a Deny by tags denies everyone, unless a later item allows all
// clients that the Deny is for. Each item by tags yields a warning. So does a policy with `from` beside others with
// `rules`, because no order relates the two forms. Source: seed 002, "Migration".
func fromPermissions(policies []*Policy) ([]Rule, []Warning) {
	var items []*item
	hasRules := false
	for _, p := range policies {
		hasRules = hasRules || len(p.rules) > 0
		for i := range p.items.from {
			items = append(items, &p.items.from[i])
		}
	}
	if len(items) == 0 {
		return nil, nil
	}
	sortItems(items)
	var rules []Rule
	var warnings []Warning
	var onMesh *Rule
	for at, it := range items {
		if forEverybody(it) {
			r, w := meshPermission(it)
			onMesh = &r
			warnings = append(warnings, w...)
			continue
		}
		r, w := tagPermission(it, overridden(items[at+1:], tagSubset(it.ref)))
		rules = append(rules, r...)
		warnings = append(warnings, w)
	}
	if onMesh != nil {
		rules = append([]Rule{*onMesh}, rules...)
	}
	if hasRules {
		warnings = append(warnings, mixedWarnings(items)...)
	}
	return rules, warnings
}

// meshPermission returns the rule for an item that is for everyone.
func meshPermission(it *item) (Rule, []Warning) {
	r := fromRule(it)
	switch actionOf(it) {
	case resources.ActionAllow:
		r.Conf.Allow = []resources.PermissionMatch{anySpiffeID}
	case resources.ActionAllowWithShadowDeny:
		r.Conf.AllowWithShadowDeny = []resources.PermissionMatch{anySpiffeID}
	case resources.ActionDeny:
		r.Closed = true
	default:
		r.Closed = true
		return r, []Warning{{
			Policy: it.policy.KRI, Field: fmt.Sprintf("from[%d].default", it.index),
			Text: "has no valid action, so it denies everybody: write Allow, Deny or AllowWithShadowDeny",
		}}
	}
	return r, nil
}

// forEverybody reports whether an item is for all clients, without any restriction, including those by fields that are
// not enforced.
func forEverybody(it *item) bool {
	return len(tagSubset(it.ref)) == 0 && !narrowed(it.ref)
}

func narrowed(ref *resources.TargetRef) bool { return len(ref.ProxyTypes) > 0 || len(ref.Labels) > 0 }

// tagPermission returns the rule for an item by tags, if it yields one, and a warning for its author.
func tagPermission(it *item, later bool) ([]Rule, Warning) {
	w := Warning{Policy: it.policy.KRI, Field: fmt.Sprintf("from[%d].targetRef", it.index)}
	switch {
	case allows(it):
		w.Text = "identities carry no tags, so an " + actionOf(it) +
			" by tags adds no access: write it under rules with a SPIFFE ID"
	case later:
		w.Text = "identities carry no tags; this deny by tags has no effect, because a later item allows the same clients"
	default:
		w.Text = "identities carry no tags, so a Deny by tags closes the inbound to all: write it under rules with a SPIFFE ID"
		r := fromRule(it)
		r.Closed = true
		return []Rule{r}, w
	}
	return nil, w
}

// overridden reports whether, for every client in s, the last of the later items that cover all of s allows.
func overridden(later []*item, s subset) bool {
	allowed := false
	for _, it := range later {
		if tagSubset(it.ref).covers(s) {
			allowed = allows(it) && !narrowed(it.ref)
		}
	}
	return allowed
}

func fromRule(it *item) Rule {
	return Rule{Origin: it.policy.KRI, Index: len(it.policy.rules) + it.index, Order: &it.order}
}

// actionOf returns the conf's action. It is empty if the action is unknown or the conf has other fields, which counts
// as a deny.
func actionOf(it *item) string {
	conf, _ := it.conf.(map[string]any)
	if len(conf) != 1 {
		return ""
	}
	action, _ := conf["action"].(string)
	switch action {
	case resources.ActionAllow, resources.ActionAllowWithShadowDeny, resources.ActionDeny:
		return action
	}
	return ""
}

func allows(it *item) bool {
	a := actionOf(it)
	return a == resources.ActionAllow || a == resources.ActionAllowWithShadowDeny
}

// mixedWarnings returns a warning for each policy with `from`.
func mixedWarnings(items []*item) []Warning {
	var out []Warning
	seen := map[*Policy]bool{}
	for _, it := range items {
		if seen[it.policy] {
			continue
		}
		seen[it.policy] = true
		out = append(out, Warning{
			Policy: it.policy.KRI, Field: "from",
			Text: "other permissions of this inbound use rules: a deny of either wins, whatever their order",
		})
	}
	return out
}
