package rbac

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Names of decisions that no policy made. A KRI begins with "kri_", so none of them looks like a policy's.
const (
	// NameDefault decides if nothing matches.
	NameDefault = "default"
	// NameMultipleURISANs denies a certificate with more than one URI SAN, before any rule.
	NameMultipleURISANs = "multiple-uri-sans"
	// NameMalformedURISAN denies a URI SAN that begins with spiffe:// and is not the SPIFFE ID of a workload, before
	// any rule.
	NameMalformedURISAN = "malformed-uri-san"
	// NameUnusualMethod applies if some entry names a method. Before any rule, it denies a request whose method is not
	// registered, or that asks the application to treat it as one of another method.
	NameUnusualMethod = "unusual-method"
	// NameOtherPath applies if some entry names a path. Before any rule, it denies a request that asks the application to
	// treat it as one of another path.
	NameOtherPath = "other-path"
)

// step is one matcher of the list: if any entry matches, the step decides. A step without entries is left out.
type step struct {
	name    string
	deny    bool
	entries []entry
	// decision is the action of the step. All places that write it share it.
	decision *onMatch
	// made keeps the step's matcher under key, for all lists; nil if it is large.
	made *matching.Made
	key  any
}

// matcherFor is the key of a step's matcher.
type matcherFor struct {
	loweredFor
	deny bool
}

// mostShared is the number of entries up to which lists share a matcher.
const mostShared = 16

// steps lays out the rules in the order in which Envoy evaluates them: the denies of every rule, then the allows of
// every rule. With dryRun set, each allowWithShadowDeny is a deny. Rules share them, so they must not be changed.
// Source: seed 000, "Algorithm", step 3.
func steps(rules matching.Rules, protocol matching.Protocol, dryRun bool) []*step {
	denies, allows := make([]*step, 0, 2*len(rules.Items)), make([]*step, 0, len(rules.Items))
	var key any = loweredFor{protocol, dryRun} // one key for all: each call of Once would allocate one
	for i := range rules.Items {
		r := &rules.Items[i]
		l := r.Made.Once(key, func() any { return lower(r, protocol, dryRun) }).(*lowered)
		denies, allows = appendStep(denies, &l.deny), appendStep(allows, &l.allow)
	}
	return append(denies, allows...)
}

// lowered holds the steps of one rule. loweredFor is the key that they are cached under.
type (
	lowered    struct{ deny, allow step }
	loweredFor struct {
		protocol matching.Protocol
		dryRun   bool
	}
)

func lower(r *matching.Rule, protocol matching.Protocol, dryRun bool) *lowered {
	name := r.Origin.String()
	deny, allow := r.Conf.Deny, r.Conf.Allow
	switch shadow := r.Conf.AllowWithShadowDeny; {
	case len(shadow) == 0:
	case dryRun:
		deny = slices.Concat(deny, shadow)
	default:
		allow = slices.Concat(allow, shadow)
	}
	d := step{name: name, deny: true, entries: lowerDenies(deny, protocol)}
	if r.Closed {
		d.entries = []entry{{}}
	}
	a := step{name: name, entries: withHeaders(lowerAllows(allow, protocol), r.Headers, protocol)}
	for _, s := range []*step{&d, &a} {
		if len(s.entries) == 0 {
			continue
		}
		s.decision = action(s.name, s.deny)
		if len(s.entries) <= mostShared {
			s.made, s.key = r.Made, matcherFor{loweredFor{protocol, dryRun}, s.deny}
		}
	}
	return &lowered{deny: d, allow: a}
}

func appendStep(list []*step, s *step) []*step {
	if len(s.entries) == 0 {
		return list
	}
	return append(list, s)
}

func lowerDenies(list []resources.PermissionMatch, protocol matching.Protocol) []entry {
	out := make([]entry, 0, len(list))
	for i := range list {
		out = append(out, lowerDeny(&list[i], protocol))
	}
	return out
}

func lowerAllows(list []resources.PermissionMatch, protocol matching.Protocol) []entry {
	out := make([]entry, 0, len(list))
	for i := range list {
		if e, ok := lowerAllow(&list[i], protocol); ok {
			out = append(out, e)
		}
	}
	return out
}

// withHeaders adds a rule's header conditions to its allow entries. TCP has no headers, so there such entries match
// nothing.
func withHeaders(list []entry, headers []matching.HeaderMatch, protocol matching.Protocol) []entry {
	tests, ok := headerTests(headers)
	if !ok || len(headers) > 0 && protocol != matching.HTTP {
		return nil
	}
	for i := range list {
		list[i].headers = tests
	}
	return list
}

// shadows reports whether some rule has allowWithShadowDeny, so that a dry run can differ from the enforced verdict.
func shadows(rules matching.Rules) bool {
	return slices.ContainsFunc(rules.Items, func(r matching.Rule) bool { return len(r.Conf.AllowWithShadowDeny) > 0 })
}
