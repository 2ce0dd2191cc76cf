package rbac_test

import (
	"testing"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestPlaintext: for any rules, the filters for connections in the clear agree with the evaluator, and nobody gets in
// by dropping TLS: what is allowed in the clear is allowed to each identity, by whatever server name.
func TestPlaintext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rules := drawRules().Draw(rt, "rules")
		f := filtersOf(rbac.Plaintext, rules)
		for _, req := range crossed(rt, drawRequest()) {
			bare := req
			bare.Plaintext, bare.URISANs, bare.SNI = true, nil, ""
			want := rbac.Evaluate(rules, bare)
			enforced, dryRun := f.answers(t, bare)
			if enforced != (decision{want.Enforced.Name, want.Enforced.Allowed}) ||
				dryRun != (decision{want.DryRun.Name, want.DryRun.Allowed}) {
				rt.Fatalf("%+v: filter says %+v, dry run %+v, evaluator %+v", bare, enforced, dryRun, want)
			}
			if len(req.URISANs) == 1 {
				known := rbac.Evaluate(rules, req)
				if id, err := spiffeid.FromString(req.URISANs[0]); err != nil || id.Path() == "" { // nobody's identity
					continue
				}
				if want.Enforced.Allowed && !known.Enforced.Allowed {
					rt.Fatalf("%+v is denied, and allowed in the clear by %+v", req, want.Enforced)
				}
			}
		}
	})
}
