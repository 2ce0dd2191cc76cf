package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// maxCompared is the number of entries that are compared with each other. Entries after the first maxCompared are
// skipped.
const maxCompared = 2000

// placed is one entry with its position.
type placed struct {
	policy *matching.Policy
	effect rbac.Effect
	field  string
	match  *resources.PermissionMatch
	// rule and place identify the entry within the policy. headers reports that its rule has header conditions.
	rule, place int
	headers     bool
}

// placedKey identifies an entry.
type placedKey struct {
	policy      *matching.Policy
	effect      rbac.Effect
	rule, place int
}

func (e *placed) key() placedKey { return placedKey{e.policy, e.effect, e.rule, e.place} }

// covers reports whether e matches every request that o matches. It is false where the entries do not prove it.
func (e *placed) covers(o *placed) bool { return !e.headers && covers(e.match, o.match) }

func placedOf(p *matching.Policy, r *matching.Rule) []placed {
	var out []placed
	for _, effect := range lists {
		entries := rbac.Entries(r, effect)
		for i := range entries {
			if rbac.Fault(&entries[i]) == "" {
				out = append(out, placed{
					policy: p, effect: effect, field: fieldOf(r, p, effect, i), match: &entries[i], rule: r.Index,
					place: i, headers: len(r.Headers) > 0,
				})
			}
		}
	}
	return out
}

// covered looks for entries of one rule that never decide because of its other entries.
func (l *linter) covered(p *matching.Policy, r *matching.Rule) {
	entries := placedOf(p, r)
	entries = entries[:min(len(entries), maxCompared)]
	for i, e := range entries {
		for n, by := range entries {
			if i == n || !by.covers(&e) {
				continue
			}
			same := e.covers(&by)
			switch {
			case same && by.effect == e.effect && n < i:
				l.add(Finding{Warning, CheckDuplicate, p.KRI.String(), e.field, "is the same as " + by.field, "remove one of them"})
			case by.effect == rbac.EffectDeny && e.effect != rbac.EffectDeny:
				l.add(Finding{Error, CheckShadowed, p.KRI.String(), e.field,
					"allows nobody: " + by.field + " denies all of it", "narrow the deny, or remove the allow"})
			case by.effect == e.effect && !same:
				l.add(Finding{Warning, CheckShadowed, p.KRI.String(), e.field,
					"decides nothing: " + by.field + " covers it", "remove it, or narrow the other"})
			default:
				continue
			}
			break
		}
	}
}

// coverage is the effect of an entry on the inbounds to which its policy applies.
type coverage struct {
	entry placed
	// on counts the kinds of inbounds that were checked, and idle those on which the entry never decides because of an
	// entry of another policy; by is the last such entry.
	on, idle int
	by       placed
}

// cover looks, among the rules of one inbound, for entries that never decide because of entries of other policies.
func (l *linter) cover(rules matching.Rules) {
	var asked []placed // in the order of evaluation
	for _, deny := range []bool{true, false} {
		for i := range rules.Items {
			p := l.mesh.byKRI[rules.Items[i].Origin]
			if p == nil {
				continue
			}
			for _, e := range placedOf(p, &rules.Items[i]) {
				if deny == (e.effect == rbac.EffectDeny) {
					asked = append(asked, e)
				}
			}
		}
	}
	if len(asked) > maxCompared {
		return
	}
	var before predecessors
	for i, e := range asked {
		st := l.coverage[e.key()]
		if st == nil {
			st = &coverage{entry: e}
			l.coverage[e.key()] = st
		}
		st.on++
		if by := before.first(&e, func(by *placed) bool {
			return by.policy != e.policy && (by.effect == e.effect || by.effect == rbac.EffectDeny) && by.covers(&e)
		}); by != nil {
			st.idle++
			st.by = *by
		}
		before.add(&asked[i])
	}
}

// predecessors holds the entries that are evaluated before another, so that it is compared only with those whose
// identity can cover its own: an entry for one identity covers none for others. The zero value is empty.
type predecessors struct {
	exact map[string][]*placed
	other []*placed
	order map[*placed]int
}

func (a *predecessors) add(e *placed) {
	if a.exact == nil {
		a.exact, a.order = map[string][]*placed{}, map[*placed]int{}
	}
	a.order[e] = len(a.order)
	if id := e.match.SpiffeID; id != nil && id.Type == resources.MatchExact {
		a.exact[id.Value] = append(a.exact[id.Value], e)
		return
	}
	a.other = append(a.other, e)
}

// first returns the first entry for which is returns true, among those whose identity can cover e's; nil if there is
// none.
func (a *predecessors) first(e *placed, is func(*placed) bool) *placed {
	var found *placed
	lists := [][]*placed{a.other}
	if id := e.match.SpiffeID; id != nil && id.Type == resources.MatchExact {
		lists = append(lists, a.exact[id.Value])
	}
	for _, list := range lists {
		if n := slices.IndexFunc(list, is); n >= 0 && (found == nil || a.order[list[n]] < a.order[found]) {
			found = list[n]
		}
	}
	return found
}

// crossed reports the entries that decide nothing on any inbound.
func (l *linter) crossed() {
	for _, st := range l.coverage {
		if st.idle < st.on {
			continue
		}
		kri, by := st.entry.policy.KRI.String(), fmt.Sprintf("%s of %s", st.by.field, st.by.policy.KRI)
		switch {
		case st.by.effect != st.entry.effect:
			l.add(Finding{Warning, CheckShadowed, kri, st.entry.field, "allows nobody: " + by + " denies all of it",
				"remove it, or contact the author of the deny"})
		case st.entry.covers(&st.by):
			l.add(Finding{Warning, CheckDuplicate, kri, st.entry.field,
				"is the same as " + by + ", which is evaluated first", "remove it, unless the other policy is temporary"})
		default:
			l.add(Finding{Warning, CheckShadowed, kri, st.entry.field, "decides nothing: " + by +
				" covers it and is evaluated first", "remove it, unless the other policy is temporary"})
		}
	}
}

// covers reports whether a matches every request that b matches. It is false where the entries do not prove it.
func covers(a, b *resources.PermissionMatch) bool {
	return coversIdentity(a.SpiffeID, b.SpiffeID) &&
		(a.SNI == nil || b.SNI != nil && strings.EqualFold(a.SNI.Value, b.SNI.Value)) &&
		coversPath(a.Path, b.Path) && coversMethods(a.Method, b.Method)
}

func coversIdentity(a, b *resources.SpiffeIDMatch) bool {
	switch {
	case a == nil:
		return true
	case b == nil:
		return a.Type == resources.MatchPrefix && a.Value == "spiffe://"
	case a.Type == resources.MatchPrefix:
		return strings.HasPrefix(b.Value, a.Value)
	}
	return b.Type == resources.MatchExact && a.Value == b.Value
}

func coversPath(a, b *resources.PathMatch) bool {
	switch {
	case a == nil:
		return true
	case b == nil:
		return a.Type == resources.MatchPrefix && strings.TrimSuffix(a.Value, "/") == ""
	case *a == *b:
		return true
	case a.Type != resources.MatchPrefix || b.Type == resources.MatchRegularExpression:
		return false
	}
	prefix := strings.TrimSuffix(a.Value, "/")
	return b.Value == prefix || strings.HasPrefix(b.Value, prefix+"/")
}

func coversMethods(a, b []string) bool {
	if len(a) == 0 {
		return true
	}
	return len(b) > 0 && !slices.ContainsFunc(b, func(m string) bool { return !slices.Contains(a, m) })
}
