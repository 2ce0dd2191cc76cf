package rbac_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestPaths is a table of the boundaries of path matching: the requests that a path matches in an allow and in a deny.
func TestPaths(t *testing.T) {
	t.Parallel()
	const neither, denied, both = "", "deny", "allow deny"
	for _, c := range []struct{ kind, value, path, want string }{
		{resources.MatchPrefix, "/metrics", "/metrics", both},
		{resources.MatchPrefix, "/metrics", "/metrics/", both},
		{resources.MatchPrefix, "/metrics", "/metrics/cpu", both},
		{resources.MatchPrefix, "/metrics", "/metrics?x", both},
		{resources.MatchPrefix, "/metrics", "/metrics/cpu?x", both},
		{resources.MatchPrefix, "/metrics", "/metricsfoo", neither},
		{resources.MatchPrefix, "/metrics", "/metrics%20", denied},
		{resources.MatchPrefix, "/metrics", "/x?/metrics/", neither},
		{resources.MatchPrefix, "/metrics", "/metrics;x=1", denied},
		{resources.MatchPrefix, "/metrics", "/metrics;x/y?z", denied},
		{resources.MatchPrefix, "/metrics/", "/metrics", both},
		{resources.MatchPrefix, "/metrics/", "/metricsfoo", neither},
		{resources.MatchPrefix, "/", "/anything?x", both},
		{resources.MatchPrefix, "/", "*", both},
		{resources.MatchExact, "/", "/", both},
		{resources.MatchExact, "/", "/?x", both},
		{resources.MatchExact, "/", "/x", neither},
		{resources.MatchExact, "/a", "/a?x", both},
		{resources.MatchExact, "/a", "/a/", denied},
		{resources.MatchExact, "/a", "/a;x", denied},
		{resources.MatchExact, "/a", "/a#x", denied},
		{resources.MatchExact, "/a", "/a%3bx", denied},
		{resources.MatchExact, "/a", "/a%3Bx", denied},
		{resources.MatchExact, "/a", "/a%3fx", denied},
		{resources.MatchExact, "/a:b", "/a:b", both},
		{resources.MatchExact, "/a:b", "/a%3ab", denied},
		{resources.MatchExact, "/a:b", "/a%3Ab?x", denied},
		{resources.MatchExact, "/a:b", "/a%3Ab/c", neither},
		{resources.MatchPrefix, "/a:b", "/a%3Ab/c", denied},
		{resources.MatchPrefix, "/a:b", "/a%3Abc", neither},
		{resources.MatchExact, "/a%3Ab", "/a:b", denied},
		{resources.MatchExact, "/a;b", "/a%3bb", denied},
		{resources.MatchExact, "/a;b", "/a", neither},
		{resources.MatchExact, "/%C3%A9", "/%c3%A9", denied},
		{resources.MatchExact, "/a%20b", "/a%20b", both},
		{resources.MatchExact, "/50%", "/50%", both},
		{resources.MatchRegularExpression, "/a", "/a%3bx", denied},
		{resources.MatchExact, "/a/", "/a/", both},
		{resources.MatchExact, "/a/", "/a", denied},
		{resources.MatchRegularExpression, "/a:b", "/a:b", both},
		{resources.MatchRegularExpression, "/a:b", "/a%3Ab", denied},
		{resources.MatchRegularExpression, "/(a|x):[bc]", "/a%3ac", denied},
		{resources.MatchRegularExpression, "/a%3Ab", "/a:b", denied},
		{resources.MatchRegularExpression, "/a[:=]b", "/a%3db?x", denied},
		{resources.MatchRegularExpression, "/a[^/]b", "/a%40b", denied},
		{resources.MatchRegularExpression, "/caf%C3%A9", "/caf%c3%a9", denied},
		{resources.MatchRegularExpression, "/a.b", "/a%25b", denied},
		{resources.MatchRegularExpression, "/a.*", "/abc", both},
		{resources.MatchRegularExpression, "/a.*z", "/abc?z", neither},
		{resources.MatchRegularExpression, "/a.*z", "/abz?c", both},
		{resources.MatchRegularExpression, "/a.*z", "/abz;c", denied},
		{resources.MatchRegularExpression, "a", "/a", neither},
		{resources.MatchRegularExpression, "/a", "/ab", neither},
		{resources.MatchRegularExpression, "/[^b]+", "/a?b", both},
		{resources.MatchRegularExpression, "^/a$", "/a?b", both},
		{resources.MatchRegularExpression, "^/a$|^/b$", "/b", both},
		{resources.MatchRegularExpression, "/a[?]x", "/a?x", neither},
		{resources.MatchRegularExpression, `/a(\?.*)?`, "/a?x", both},
		{resources.MatchRegularExpression, `(?i)/admin\b.*`, "/ADMIN/x", both},
		{resources.MatchRegularExpression, `(?i)/admin\b.*`, "/ADMINX", neither},
		{resources.MatchRegularExpression, `/\pL+`, "/abc", both},
	} {
		match := resources.PermissionMatch{Path: &resources.PathMatch{Type: c.kind, Value: c.value}}
		anyone := resources.PermissionMatch{Method: []string{"GET"}}
		req := rbac.Request{Protocol: matching.HTTP, URISANs: []string{"spiffe://a.mesh/x"}, Method: "GET", Path: c.path}
		var got []string
		for effect, conf := range map[string]resources.PermissionConf{
			"allow": {Allow: []resources.PermissionMatch{match}},
			"deny":  {Allow: []resources.PermissionMatch{anyone}, Deny: []resources.PermissionMatch{match}},
		} {
			rules := rulesOf(conf)
			allowed := rbac.Evaluate(rules, req).Enforced.Allowed
			for _, form := range forms {
				if filter, _ := filtersOf(form, rules).answers(t, req); filter.allowed != allowed {
					t.Errorf("%s %s, %s, %s: %s says %v, evaluator %v", c.kind, c.value, c.path, effect, form, filter.allowed, allowed)
				}
			}
			if allowed == (effect == "allow") {
				got = append(got, effect)
			}
		}
		if len(got) == 2 {
			got = []string{both}
		}
		if strings.Join(got, "") != c.want {
			t.Errorf("%s %s, path %s: matched in %q, want %q", c.kind, c.value, c.path, got, c.want)
		}
	}
}

// TestInvalidPaths checks that a path that can match nothing, or that Envoy would refuse, allows no client, denies
// every client, and is reported.
func TestInvalidPaths(t *testing.T) {
	t.Parallel()
	for _, m := range []resources.PathMatch{
		{Type: "Glob", Value: "/a"},
		{Type: resources.MatchExact, Value: ""},
		{Type: resources.MatchExact, Value: "a"},
		{Type: resources.MatchExact, Value: "/a?x"},
		{Type: resources.MatchExact, Value: "/a#x"},
		{Type: resources.MatchExact, Value: "/a//b"},
		{Type: resources.MatchExact, Value: "/a/../b"},
		{Type: resources.MatchPrefix, Value: "/."},
		{Type: resources.MatchPrefix, Value: `/a\b`},
		{Type: resources.MatchPrefix, Value: "/a b"},
		{Type: resources.MatchPrefix, Value: "/é"},
		{Type: resources.MatchExact, Value: "/a|b"},
		{Type: resources.MatchExact, Value: "/%61"},
		{Type: resources.MatchExact, Value: "/a%7Eb"},
		{Type: resources.MatchPrefix, Value: "/a%2fb"},
		{Type: resources.MatchPrefix, Value: "/a%5Cb"},
		{Type: resources.MatchPrefix, Value: "/a%00b"},
		{Type: resources.MatchRegularExpression, Value: "("},
		{Type: resources.MatchRegularExpression, Value: "/a$b"},
		{Type: resources.MatchRegularExpression, Value: "(/a$)?"},
		{Type: resources.MatchRegularExpression, Value: "/é"},
		{Type: resources.MatchRegularExpression, Value: "/(?=x)"},
		{Type: resources.MatchRegularExpression, Value: "/" + strings.Repeat("a", 1024)},
		{Type: resources.MatchRegularExpression, Value: "/(" + strings.Repeat("abc", 100) + "){1000}"},
	} {
		match := []resources.PermissionMatch{{Path: &m}}
		req := rbac.Request{Protocol: matching.HTTP, URISANs: []string{"spiffe://a.mesh/x"}, Method: "GET", Path: "/anything"}
		if rbac.Evaluate(rulesOf(resources.PermissionConf{Allow: match}), req).Enforced.Allowed {
			t.Errorf("%v allows", m)
		}
		denied := rulesOf(resources.PermissionConf{Deny: match,
			Allow: []resources.PermissionMatch{{Method: []string{"GET"}}}})
		if rbac.Evaluate(denied, req).Enforced.Allowed {
			t.Errorf("%v does not deny", m)
		}
		for _, form := range forms {
			if filter, _ := filtersOf(form, denied).answers(t, req); filter.allowed {
				t.Errorf("the %s of %v does not deny", form, m)
			}
		}
		if w := rbac.Warnings(denied, matching.HTTP); len(w) != 1 || w[0].Field != "rules[0].default.deny[0]" {
			t.Errorf("%v: warnings %v", m, w)
		}
	}
}

// TestEnvoyTakesBigExpressions checks the limits of expressions with a real Envoy, which must accept those within the
// limits.
func TestEnvoyTakesBigExpressions(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	var conf resources.PermissionConf
	for _, e := range []string{
		"/" + strings.Repeat("[^x]*a", 150), "/(abcd){400}", "/(([a-z]x?.b){10}){10}",
		"/" + strings.Repeat("[abdfhjln]{10}", 20),
		`/\pL{10}`, "/.{200}", "/(?i:" + strings.Repeat("k", 900) + ")",
	} {
		m := resources.PermissionMatch{Path: &resources.PathMatch{Type: resources.MatchRegularExpression, Value: e}}
		conf.Allow, conf.Deny = append(conf.Allow, m), append(conf.Deny, m)
	}
	if w := rbac.Warnings(rulesOf(conf), matching.HTTP); len(w) > 0 {
		t.Fatalf("refused: %v", w)
	}
	dir := shortTempDir(t)
	validate(t, envoyBinary(t), dir,
		[]any{ca.listener(t, filepath.Join(dir, "big"), matching.HTTP, filtersOf(rbac.List, rulesOf(conf)))})
}
