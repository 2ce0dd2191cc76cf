package rbac_test

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestEntriesThatCannotBeEnforced checks that each such entry allows no client, denies by its valid parts, and is
// reported.
func TestEntriesThatCannotBeEnforced(t *testing.T) {
	t.Parallel()
	const somebody, other = "spiffe://a.mesh/x", "spiffe://a.mesh/y"
	id := func(kind, value string) *resources.SpiffeIDMatch {
		return &resources.SpiffeIDMatch{Type: kind, Value: value}
	}
	exact := id(resources.MatchExact, somebody)
	for name, c := range map[string]struct {
		match        resources.PermissionMatch
		protocol     matching.Protocol
		deniesOthers bool
	}{
		"names nothing":               {resources.PermissionMatch{}, matching.HTTP, true},
		"an unknown type of identity": {resources.PermissionMatch{SpiffeID: id("Glob", "spiffe://*")}, matching.HTTP, true},
		"an empty prefix": {resources.PermissionMatch{SpiffeID: id(resources.MatchPrefix, "")},
			matching.HTTP, true},
		"not a SPIFFE ID": {resources.PermissionMatch{SpiffeID: id(resources.MatchPrefix, "http://a")},
			matching.HTTP, true},
		"an unknown type of SNI": {resources.PermissionMatch{SpiffeID: exact,
			SNI: &resources.SNIMatch{Type: "Prefix", Value: "x"}}, matching.HTTP, false},
		"an empty SNI": {resources.PermissionMatch{SpiffeID: exact,
			SNI: &resources.SNIMatch{Type: resources.MatchExact}}, matching.TCP, false},
		"an empty list of methods": {resources.PermissionMatch{SpiffeID: exact, Method: []string{}},
			matching.HTTP, false},
		"an empty method": {resources.PermissionMatch{SpiffeID: exact, Method: []string{""}},
			matching.HTTP, false},
		"a method in small letters": {resources.PermissionMatch{SpiffeID: exact, Method: []string{"get"}},
			matching.HTTP, false},
		"a path on TCP": {resources.PermissionMatch{SpiffeID: exact,
			Path: &resources.PathMatch{Type: resources.MatchPrefix, Value: "/a"}}, matching.TCP, false},
		"a method on TCP": {resources.PermissionMatch{SpiffeID: exact, Method: []string{"GET"}},
			matching.TCP, false},
		"a path for everybody, on TCP": {resources.PermissionMatch{Path: &resources.PathMatch{Type: resources.MatchPrefix, Value: "/"}}, matching.TCP, true},
	} {
		t.Run(name, func(t *testing.T) {
			allow := rulesOf(resources.PermissionConf{Allow: []resources.PermissionMatch{c.match}})
			deny := rulesOf(resources.PermissionConf{
				Deny:  []resources.PermissionMatch{c.match},
				Allow: []resources.PermissionMatch{{SpiffeID: exact}, {SpiffeID: id(resources.MatchExact, other)}},
			})
			for from, denied := range map[string]bool{somebody: true, other: c.deniesOthers} {
				req := rbac.Request{Protocol: c.protocol, URISANs: []string{from}, SNI: "other.example"}
				if c.protocol == matching.HTTP {
					req.Method, req.Path = "GET", "/b"
				}
				expect(t, allow, req, false)
				expect(t, deny, req, !denied)
			}
			for _, rules := range []matching.Rules{allow, deny} {
				if len(rbac.Warnings(rules, c.protocol)) != 1 {
					t.Errorf("warnings %v", rbac.Warnings(rules, c.protocol))
				}
			}
		})
	}
}

func expect(t *testing.T, rules matching.Rules, req rbac.Request, allowed bool) {
	t.Helper()
	if got := rbac.Evaluate(rules, req).Enforced; got.Allowed != allowed {
		t.Errorf("%+v: evaluator %+v", req, got)
	}
	for _, form := range forms {
		if got, _ := filtersOf(form, rules).answers(t, req); got.allowed != allowed {
			t.Errorf("%+v: %s says %+v", req, form, got)
		}
	}
}
