package rbac_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

func TestShrinks(t *testing.T) {
	t.Parallel()
	id := func(kind, value string) resources.PermissionMatch {
		return resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{Type: kind, Value: "spiffe://a/" + value}}
	}
	one, more, prefix := id(resources.MatchExact, "one"), id(resources.MatchExact, "two"), id(resources.MatchPrefix, "")
	get := one
	get.Method = resources.Methods{"GET"}
	allow := func(list ...resources.PermissionMatch) resources.PermissionConf {
		return resources.PermissionConf{Allow: list}
	}
	deny := func(list ...resources.PermissionMatch) resources.PermissionConf {
		return resources.PermissionConf{Deny: list}
	}
	for name, c := range map[string]struct {
		old, next matching.Rules
		http      bool
		want      bool
	}{
		"nothing changes":         {old: rulesOf(allow(one)), next: rulesOf(allow(one))},
		"one more":                {old: rulesOf(allow(one)), next: rulesOf(allow(one, more))},
		"one less":                {old: rulesOf(allow(one, more)), next: rulesOf(allow(one)), want: true},
		"a prefix instead":        {old: rulesOf(allow(one, more)), next: rulesOf(allow(prefix))},
		"one instead of a prefix": {old: rulesOf(allow(prefix)), next: rulesOf(allow(one)), want: true},
		"a deny":                  {old: rulesOf(allow(prefix)), next: rulesOf(allow(prefix), deny(one)), want: true},
		"a deny less":             {old: rulesOf(allow(prefix), deny(one)), next: rulesOf(allow(prefix))},
		"a narrower deny":         {old: rulesOf(allow(prefix), deny(prefix)), next: rulesOf(deny(one), allow(prefix))},
		"a wider deny": {old: rulesOf(allow(prefix), deny(one)),
			next: rulesOf(allow(prefix), deny(prefix)), want: true},
		"another order": {old: rulesOf(allow(one), allow(more)), next: rulesOf(allow(more), allow(one))},
		"a shadow deny for an allow": {old: rulesOf(allow(one)),
			next: rulesOf(resources.PermissionConf{AllowWithShadowDeny: []resources.PermissionMatch{one}})},
		"a method more is no more": {old: rulesOf(allow(one)), next: rulesOf(allow(get)), http: true, want: true},
		"a method less":            {old: rulesOf(allow(get)), next: rulesOf(allow(one)), http: true},
		"a request's allow on TCP": {old: rulesOf(allow(get)), next: rulesOf()},
		"a rule that nobody can read": {old: rulesOf(allow(one)),
			next: matching.Rules{Items: append(rulesOf(allow(one)).Items, matching.Rule{Closed: true})}, want: true},
	} {
		protocol := matching.TCP
		if c.http {
			protocol = matching.HTTP
		}
		if got := rbac.Shrinks(c.old, c.next, protocol); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestWhatDoesNotShrinkDeniesNobody checks that where Shrinks is false, no allowed request becomes denied: open
// connections may stay.
func TestWhatDoesNotShrinkDeniesNobody(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		old, next := drawRules().Draw(rt, "old"), drawRules().Draw(rt, "next")
		if rapid.Bool().Draw(rt, "grows") { // unrelated rules hardly ever only add entries
			next.Items = append(append([]matching.Rule{}, old.Items...), next.Items...)
		}
		req := drawRequest().Draw(rt, "request")
		if rbac.Shrinks(old, next, req.Protocol) {
			return
		}
		if rbac.Evaluate(old, req).Enforced.Allowed && !rbac.Evaluate(next, req).Enforced.Allowed {
			rt.Fatalf("%+v is allowed no more, and Shrinks does not see it", req)
		}
	})
}
