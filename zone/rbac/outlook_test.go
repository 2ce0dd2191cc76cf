package rbac_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestOutlookAgreesWithEvaluator draws rules and requests. What the outlook calls certain must be the verdict about every
// request, and where nothing but the client, the method and the path counts, it must be certain once they are known.
func TestOutlookAgreesWithEvaluator(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rules := drawRules().Draw(rt, "rules")
		for range 10 {
			req := drawRequest().Draw(rt, "request")
			want := rbac.Evaluate(rules, req)
			if len(req.URISANs) != 1 || !isOrdinary(want.Enforced.Name) || !isOrdinary(want.DryRun.Name) {
				continue
			}
			for _, known := range []rbac.Known{{}, {Method: req.Method}, {Path: req.Path}, {Method: req.Method, Path: req.Path}} {
				got := rbac.NewForecaster(rules, req.Protocol, known).Of(rbac.NewClient(req.URISANs[0]))
				complete := known.Method == req.Method && known.Path == req.Path && !needsMore(rules)
				compare(rt, "enforced", got.Enforced, want.Enforced, complete)
				compare(rt, "dry run", got.DryRun, want.DryRun, complete)
			}
		}
	})
}

func isOrdinary(name string) bool {
	return name != rbac.NameUnusualMethod && name != rbac.NameOtherPath
}

// needsMore reports whether a verdict may depend on a server name or a header.
func needsMore(rules matching.Rules) bool {
	for i := range rules.Items {
		c := &rules.Items[i].Conf
		for _, list := range [][]resources.PermissionMatch{c.Deny, c.Allow, c.AllowWithShadowDeny} {
			for n := range list {
				if list[n].SNI != nil {
					return true
				}
			}
		}
		if len(rules.Items[i].Headers) > 0 {
			return true
		}
	}
	return false
}

func compare(rt *rapid.T, what string, got rbac.Chance, want rbac.Decision, complete bool) {
	switch {
	case got.Depends && got.Parts == 0:
		rt.Fatalf("%s depends on nothing: %+v", what, got)
	case got.Depends && complete:
		rt.Fatalf("%s: everything is known, and it depends on %b; evaluator %+v", what, got.Parts, want)
	case !got.Depends && got.Allowed != want.Allowed:
		rt.Fatalf("%s: certainly %v by %s, and the evaluator says %+v", what, got.Allowed, got.Name, want)
	case complete && got.Name != want.Name:
		rt.Fatalf("%s: by %s, and the evaluator says by %s", what, got.Name, want.Name)
	}
}
