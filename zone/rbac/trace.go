package rbac

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Match is one entry that a request meets, whether or not it decides.
type Match struct {
	// Rule is the place in Rules.Items; Effect and Entry say which entry. EffectNone is a rule that is closed.
	Rule   int
	Effect Effect
	Entry  int
}

// Matching lists every entry that the request meets, in the order in which they are asked: those that deny of all rules,
// then those that allow. The first one is what Evaluate decides by, unless the request has more than one URI SAN.
func Matching(rules matching.Rules, req Request) []Match {
	var out []Match
	for i := range rules.Items {
		if rules.Items[i].Closed {
			out = append(out, Match{Rule: i})
			continue
		}
		out = appendMatches(out, i, &rules.Items[i], EffectDeny, func(m *resources.PermissionMatch) bool { return denies(m, &req) })
	}
	for i := range rules.Items {
		if !headersHold(rules.Items[i].Headers, &req) {
			continue
		}
		for _, effect := range []Effect{EffectAllow, EffectAllowWithShadowDeny} {
			out = appendMatches(out, i, &rules.Items[i], effect, func(m *resources.PermissionMatch) bool { return allows(m, &req) })
		}
	}
	return out
}

func appendMatches(out []Match, rule int, r *matching.Rule, effect Effect, match func(*resources.PermissionMatch) bool) []Match {
	list := listOf(r, effect)
	for i := range list {
		if match(&list[i]) {
			out = append(out, Match{Rule: rule, Effect: effect, Entry: i})
		}
	}
	return out
}

// Entries are the entries of one list of a rule; they must not be changed.
func Entries(r *matching.Rule, effect Effect) []resources.PermissionMatch { return listOf(r, effect) }

// MissingHeaders are the conditions of a rule that keep its allow entries from allowing a request.
func MissingHeaders(r *matching.Rule, req Request) []matching.HeaderMatch {
	var out []matching.HeaderMatch
	for _, h := range r.Headers {
		if !headersHold([]matching.HeaderMatch{h}, &req) {
			out = append(out, h)
		}
	}
	return out
}

// Missing names the parts of an allow entry that keep it from allowing a request, spelled as their fields; none when it
// allows it. An entry that is not valid, or needs HTTP on a TCP connection, names what makes it so.
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
	add(partPath, valid && m.Path != nil && (!matchesPath(m.Path, withoutQuery(req.Path)) || mustBeClear(m.Path) && climbingPath.MatchString(req.Path)))
	add(partMethod, len(m.Method) > 0 && !slices.Contains(m.Method, req.Method))
	return out
}
