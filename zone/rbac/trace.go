package rbac

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Match is one entry that matches a request, whether or not it decides.
type Match struct {
	// Rule is the index in Rules.Items; Effect and Entry identify the entry. EffectNone stands for a closed rule.
	Rule   int
	Effect Effect
	Entry  int
}

// Matching returns every entry that matches the request, in the order of evaluation: the denies of all rules, then the
// allows. Evaluate decides by the first, unless the request is denied before any rule.
func Matching(rules matching.Rules, req Request) []Match {
	var out []Match
	for i := range rules.Items {
		if rules.Items[i].Closed {
			out = append(out, Match{Rule: i})
			continue
		}
		out = appendMatches(out, i, &rules.Items[i], EffectDeny,
			func(m *resources.PermissionMatch) bool { return denies(m, &req) })
	}
	for i := range rules.Items {
		if !headersHold(rules.Items[i].Headers, &req) {
			continue
		}
		for _, effect := range []Effect{EffectAllow, EffectAllowWithShadowDeny} {
			out = appendMatches(out, i, &rules.Items[i], effect,
				func(m *resources.PermissionMatch) bool { return allows(m, &req) })
		}
	}
	return out
}

func appendMatches(out []Match, rule int, r *matching.Rule, effect Effect,
	match func(*resources.PermissionMatch) bool) []Match {
	list := listOf(r, effect)
	for i := range list {
		if match(&list[i]) {
			out = append(out, Match{Rule: rule, Effect: effect, Entry: i})
		}
	}
	return out
}

// Entries returns the entries of one list of a rule. The caller must not change them.
func Entries(r *matching.Rule, effect Effect) []resources.PermissionMatch { return listOf(r, effect) }

// MissingHeaders returns the header conditions of a rule that the request does not meet.
func MissingHeaders(r *matching.Rule, req Request) []matching.HeaderMatch {
	var out []matching.HeaderMatch
	for _, h := range r.Headers {
		if !headersHold([]matching.HeaderMatch{h}, &req) {
			out = append(out, h)
		}
	}
	return out
}

// Missing names the parts of an allow entry that keep it from allowing a request, spelled as their fields. It is empty
// if the entry allows the request. For an entry that is not valid, or needs HTTP on a TCP connection, it names the
// parts at fault.
func Missing(m *resources.PermissionMatch, req Request) []string {
	var out []string
	for _, f := range faultsOf(m) {
		out = append(out, string(f.part))
	}
	add := func(p part, missing bool) {
		if missing && !slices.Contains(out, string(p)) {
			out = append(out, string(p))
		}
	}
	valid := len(out) == 0
	add(partIdentity, m.SpiffeID != nil && !matchesIdentity(m.SpiffeID, &req))
	add(partSNI, m.SNI != nil && !matchesSNI(m.SNI, &req))
	if req.Protocol != matching.HTTP {
		add(partPath, m.Path != nil)
		add(partMethod, len(m.Method) > 0)
		return out
	}
	add(partPath, valid && m.Path != nil && (!matchesPath(m.Path, withoutQuery(req.Path)) || mustBeClear(m.Path) &&
		climbingPath().MatchString(req.Path)))
	add(partMethod, len(m.Method) > 0 && !slices.Contains(m.Method, req.Method))
	return out
}
