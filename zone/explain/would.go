package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// maxHints is the largest number of near misses that an answer names.
const maxHints = 5

// would returns changes that would change the verdict. It checks each hint by evaluating the proposed change.
func (j *judgement) would() []string {
	if j.verdict.Enforced.Allowed {
		return append(j.withoutDeciders(), j.shadowHint()...)
	}
	switch j.verdict.Enforced.Name {
	case rbac.NameMalformedURISAN, rbac.NameMultipleURISANs:
		return nil
	}
	if j.verdict.Enforced.Rule >= 0 {
		return append(j.withoutDeciders(), j.nearMisses("and then ")...)
	}
	return j.nearMisses("")
}

// withoutDeciders removes entries that lead to the verdict, one after the other, until the verdict changes.
func (j *judgement) withoutDeciders() []string {
	rules, was := j.rules, j.verdict.Enforced
	var gone []string
	for d := was; d.Rule >= 0 && d.Allowed == was.Allowed; {
		gone = append(gone, fmt.Sprintf("%s of %s", j.fieldIn(rules, d), d.Name))
		if len(gone) > maxHints {
			return nil
		}
		rules = without(rules, d)
		if d = rbac.Evaluate(rules, j.request).Enforced; d.Allowed != was.Allowed {
			return []string{fmt.Sprintf("without %s: %s by %s", strings.Join(gone, " and "), verdictOf(d), d.Name)}
		}
	}
	if was.Allowed || len(gone) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("without %s: still denied, because nothing allows it", strings.Join(gone, " and "))}
}

// fieldIn returns the path of an entry, even if other entries were removed: without keeps their places.
func (j *judgement) fieldIn(rules matching.Rules, d rbac.Decision) string {
	return fieldOf(&rules.Items[d.Rule], j.mesh.byKRI[rules.Items[d.Rule].Origin], d.Effect, d.Entry)
}

// without returns the rules as if the deciding entry did not exist. It replaces an allow with an invalid one, and a
// deny with one for a client that does not exist, so that all other entries keep their places.
func without(rules matching.Rules, d rbac.Decision) matching.Rules {
	out := matching.Rules{Items: slices.Clone(rules.Items)}
	r := &out.Items[d.Rule]
	r.Made = nil
	replace := func(list []resources.PermissionMatch) []resources.PermissionMatch {
		list = slices.Clone(list)
		list[d.Entry] = resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchExact,
			Value: "spiffe://nobody.invalid/"}}
		return list
	}
	switch d.Effect {
	case rbac.EffectDeny:
		r.Conf.Deny = replace(r.Conf.Deny)
	case rbac.EffectAllow:
		r.Conf.Allow = replace(r.Conf.Allow)
	case rbac.EffectAllowWithShadowDeny:
		r.Conf.AllowWithShadowDeny = replace(r.Conf.AllowWithShadowDeny)
	default:
		r.Closed = false
	}
	return out
}

func (j *judgement) shadowHint() []string {
	if j.verdict.DryRun.Allowed {
		return nil
	}
	return []string{"with allowWithShadowDeny enforced as a deny: deny by " + j.verdict.DryRun.Name}
}

// nearMisses names the allow entries that the request comes closest to. Each text begins with prefix.
func (j *judgement) nearMisses(prefix string) []string {
	if slices.ContainsFunc(rbac.Matching(j.rules, j.request), func(m rbac.Match) bool {
		return m.Effect == rbac.EffectAllow || m.Effect == rbac.EffectAllowWithShadowDeny
	}) {
		return nil // an entry allows it already
	}
	type miss struct {
		parts int
		text  string
	}
	var found []miss
	for i := range j.rules.Items {
		r := &j.rules.Items[i]
		for _, effect := range []rbac.Effect{rbac.EffectAllow, rbac.EffectAllowWithShadowDeny} {
			for n, entry := range rbac.Entries(r, effect) {
				parts, headers := rbac.Missing(&entry, j.request), rbac.MissingHeaders(r, j.request)
				if len(parts)+len(headers) == 0 || slices.Contains(parts, "") {
					continue
				}
				text := fmt.Sprintf("%s%s of %s would allow it %s", prefix, j.field(i, effect, n), r.Origin,
					j.condition(&entry, parts, headers))
				found = append(found, miss{len(parts) + len(headers), text})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b miss) int { return a.parts - b.parts })
	var out []string
	for _, m := range found {
		if m.parts > found[0].parts || len(out) == maxHints {
			break
		}
		out = append(out, m.text)
	}
	return append(out, fmt.Sprintf("%san allow entry with spiffeId {type: Exact, value: %q} in a policy that selects %s",
		prefix, j.request.URISANs[0], j.subject.kri()))
}

// condition describes how the request would have to change for an entry to match.
func (j *judgement) condition(m *resources.PermissionMatch, parts []string, headers []matching.HeaderMatch) string {
	var out, overHTTP []string
	for _, p := range parts {
		switch {
		case p == "spiffeId" && m.SpiffeID != nil:
			out = append(out, fmt.Sprintf("from %s %s", strings.ToLower(m.SpiffeID.Type), m.SpiffeID.Value))
		case p == "sni" && m.SNI != nil:
			out = append(out, "with SNI "+m.SNI.Value)
		case j.request.Protocol != matching.HTTP:
			overHTTP = append(overHTTP, p)
		case p == "path" && m.Path != nil:
			out = append(out, fmt.Sprintf("for the path %s %s", strings.ToLower(m.Path.Type), m.Path.Value))
		case p == "method":
			out = append(out, "with the method "+strings.Join(m.Method, " or "))
		}
	}
	for _, h := range headers {
		out = append(out, fmt.Sprintf("with the header %s matching %s", h.Name, h.Expression))
	}
	if len(overHTTP) > 0 {
		out = append(out, "on an HTTP inbound, where "+strings.Join(overHTTP, " and ")+" can be seen")
	}
	return strings.Join(out, " and ")
}
