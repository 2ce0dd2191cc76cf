package rbac_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestGRPCAgreesWithEvaluator sends random requests with mTLS through a real grpc-go server that has a route, selected
// by a header, for each random set of rules. The server decides as the evaluator does where the classic form can
// express the rules, and never allows what the evaluator denies.
func TestGRPCAgreesWithEvaluator(t *testing.T) {
	t.Parallel()
	sets := liveSets(*liveRuleSets)
	g := startGRPC(t, sets)
	seen, stricter := map[bool]int{}, 0
	for i, rules := range sets {
		exact := len(rbac.ClassicWarnings(rules)) == 0
		for seed := range 3 * livePerSet {
			req := drawRequest().Example(1000*i + seed)
			if req.Protocol != matching.HTTP || len(req.URISANs) > 1 || !isMethodName(req.Path) {
				continue // the handshake refuses several URI SANs
			}
			req.Method = "POST"
			want := rbac.Evaluate(rules, req).Enforced.Allowed
			if path, refused := rbac.NormalizePath(req.Path); refused != "" || path != req.Path {
				want = false
			}
			got := g.allows(t, i, &req)
			if got && !want || exact && got != want {
				t.Errorf("set %d: %+v: grpc-go allows: %v, evaluator: %v; all can be said: %v\n%s", i, req, got, want,
					exact, asJSON(t, rules))
			}
			seen[got]++
			if got != want {
				stricter++
			}
		}
	}
	if seen[true] < 50 || seen[false] < 50 || stricter == 0 {
		t.Errorf("the sample is one-sided: %v, stricter %d", seen, stricter)
	}
}

// isMethodName reports whether grpc-go accepts a path as the name of a method: a service and a method.
func isMethodName(path string) bool {
	rest, rooted := strings.CutPrefix(path, "/")
	return rooted && strings.Contains(rest, "/")
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	ok(t, err)
	return string(text)
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestGRPCDeniesWithoutRules checks that a route that does not configure the filters leaves them as the listener has
// them.
func TestGRPCDeniesWithoutRules(t *testing.T) {
	t.Parallel()
	g := startGRPC(t, nil)
	if g.allows(t, 0, &rbac.Request{URISANs: []string{"spiffe://a/w"}, Path: "/a/b"}) {
		t.Error("allowed")
	}
}
