package rbac

import (
	"cmp"
	"fmt"

	xdsmatcher "github.com/cncf/xds/go/xds/type/matcher/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	netrbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"

	"github.com/causeway-mesh/causeway/zone/matching"
)

// Form is how rules are written for Envoy. Every form but Plaintext gives the same verdicts under the same names.
type Form string

const (
	// List is read from top to bottom, by people and by Envoy. The time for a request grows with the number of entries.
	List Form = "list"
	// Compiled looks identities up in maps.
	Compiled Form = "compiled"
	// Auto, like the empty Form, selects the form that FormFor picks.
	Auto Form = "auto"
	// Plaintext judges plaintext connections only. It denies where a verdict depends on the client's identity.
	Plaintext Form = "plaintext"
)

// ParseForm parses a Form as users write it.
func ParseForm(s string) (Form, error) {
	switch f := Form(s); f {
	case List, Compiled, Auto:
		return f, nil
	}
	return "", fmt.Errorf("%q is not a form of permissions: want list, compiled or auto", s)
}

// compileFrom is the number of entries from which FormFor compiles. Below it, a list is as fast, and readable.
const compileFrom = 32

// FormFor returns the form that suits the rules: a list if it is short.
func FormFor(rules matching.Rules) Form {
	entries := 0
	for i := range rules.Items {
		c := &rules.Items[i].Conf
		entries += len(c.Deny) + len(c.Allow) + len(c.AllowWithShadowDeny)
	}
	if entries < compileFrom {
		return List
	}
	return Compiled
}

// chosen returns a form other than Auto.
func (f Form) chosen(rules matching.Rules) Form {
	if f == List || f == Compiled || f == Plaintext {
		return f
	}
	return FormFor(rules)
}

// matcher writes steps. The error is why Envoy would refuse them.
func (f Form) matcher(list []*step, by toldBy) (*xdsmatcher.Matcher, error) {
	var m *xdsmatcher.Matcher
	switch f {
	case Compiled:
		m = compiledMatcher(list, by)
	case Plaintext:
		m = plaintextMatcher(list, by)
	default:
		return listMatcher(list, by)
	}
	return m, m.Validate()
}

// HTTPFilter returns the filter of an HTTP inbound (envoy.filters.http.rbac). It has a shadow matcher only if some rule
// has allowWithShadowDeny. Envoy keeps statistics for each policy, under its KRI.
func (f Form) HTTPFilter(rules matching.Rules) Filter {
	f = f.chosen(rules)
	by := toldByIn(rules)
	filter := &httprbac.RBAC{ShadowRulesStatPrefix: dryRunPrefix, TrackPerRuleStats: true}
	var refused, shadowRefused error
	filter.Matcher, refused = f.matcher(steps(rules, matching.HTTP, false), by)
	if shadows(rules) {
		filter.ShadowMatcher, shadowRefused = f.matcher(steps(rules, matching.HTTP, true), by)
	}
	return Filter{filter, cmp.Or(refused, shadowRefused)}
}

// NetworkFilters returns the two filters of a TCP inbound (envoy.filters.network.rbac), in this order: dryrun only
// reports and must never stand alone, enforced decides. Both are always present, so that a listener's structure does
// not depend on policies. statPrefix is Envoy's and must not be empty.
func (f Form) NetworkFilters(rules matching.Rules, statPrefix string) (dryrun, enforced Filter) {
	f = f.chosen(rules)
	reports := &netrbac.RBAC{ShadowRulesStatPrefix: dryRunPrefix, StatPrefix: statPrefix}
	decides := &netrbac.RBAC{ShadowRulesStatPrefix: enforcedPrefix, StatPrefix: statPrefix}
	unnamed := decides.Validate()
	matcher, refused := f.matcher(steps(rules, matching.TCP, false), toldBy{})
	decides.Matcher, decides.ShadowMatcher, reports.ShadowMatcher = matcher, matcher, matcher
	enforced = Filter{decides, cmp.Or(unnamed, refused)}
	if shadows(rules) {
		reports.ShadowMatcher, refused = f.matcher(steps(rules, matching.TCP, true), toldBy{})
	}
	return Filter{reports, cmp.Or(unnamed, refused)}, enforced
}
