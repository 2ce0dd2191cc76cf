package rbac_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	xdsmatcher "github.com/cncf/xds/go/xds/type/matcher/v3"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Pools from which rules and requests are drawn. They are small, so that rules and requests often match, and have
// values on both sides of every boundary: segments, queries, case, invalid values.
var (
	identities = []string{
		"spiffe://a.mesh/ns/x/sa/one", "spiffe://a.mesh/ns/x/sa/one-more", "spiffe://a.mesh/ns/x",
		"spiffe://a.mesh/ns/xy/sa/one",
		"spiffe://a.mesh/", "spiffe://a.mesh", "spiffe://a.mesh.evil/ns/x/sa/one", "spiffe://b.mesh/workload/two",
		"spiffe://b.mesh/",
		"spiffe://",
	}
	paths = []string{
		"/", "/a", "/a/", "/a/b", "/ab", "/a;b", "/a;b/c", "/a/b;c", "/A", "/a%3fb", "/b", "/b/a", "*",
		"/a:b", "/a%3ab", "/a%3Ab", "/a%3bb", "/a%3Bb/c", "/a%23", "/a%c3%a9", "/a%C3%A9", "/a%", "/a%3", "/b/..;/a", "/.;x",
	}
	queries     = []string{"", "", "?", "?x", "?/a", "?/b;a", "?a=/a/b#", "?x?y"}
	expressions = []string{
		"/a", "/a.*", ".*b", "^/a$", "/(a|b)", "^/a$|/b", "/[^x]*", "(?i)/a", "/a(/.*)?", "/.{0,3}", `/\w+`, `/a\b.*`,
		"/a[?]x", "/a.b", "", "/a$b", "(", "[?]",
		"/a:b", "/a%3ab.*", "/a[:;].", "/a%c3%A9", "/[^b]{1,3}",
	}
	serverNames = []string{"", "x.example", "X.example", "y.example"}
	methods     = []string{"GET", "POST", "HEAD", "get"}
)

// TestFiltersAgreeWithEvaluator compares the generated filters of both forms, evaluated by the interpreter, with the
// reference.
func TestFiltersAgreeWithEvaluator(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		agree(t, rt, drawRules().Draw(rt, "rules"), drawRequest())
	})
}

// TestFiltersAgreeOnManyIdentities does the same for rules long enough that compiling them takes several segments.
func TestFiltersAgreeOnManyIdentities(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		agree(t, rt, drawManyRules().Draw(rt, "rules"), rapid.Custom(func(t *rapid.T) rbac.Request {
			req := drawRequest().Draw(t, "base")
			if len(req.URISANs) > 0 {
				req.URISANs[0] = drawSAN(drawIdentity()).Draw(t, "san")
			}
			return req
		}))
	})
}

// FuzzFilters is TestFiltersAgreeOnManyIdentities, steered by the fuzzer.
func FuzzFilters(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) { agree(t, rt, drawManyRules().Draw(rt, "rules"), drawRequest()) })(t, seed)
	})
}

// FuzzPath uses arbitrary paths in the policy and in the request. It checks that both forms and the evaluator agree,
// that nothing panics, and that an entry that allows a path also denies it.
func FuzzPath(f *testing.F) {
	f.Add(resources.MatchExact, "/a:b", "/a%3Ab;c?d")
	f.Add(resources.MatchPrefix, "/a%C3%A9/", "/a%c3%A9/b")
	f.Add(resources.MatchRegularExpression, "^/(a|b).*$", "/a?b")
	f.Fuzz(func(t *testing.T, kind, value, path string) {
		if !utf8.ValidString(value) || strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return // JSON has no such value, and Envoy refuses the path
		}
		match := []resources.PermissionMatch{{Path: &resources.PathMatch{Type: kind, Value: value}}}
		allow := rulesOf(resources.PermissionConf{Allow: match})
		deny := rulesOf(resources.PermissionConf{Deny: match, Allow: []resources.PermissionMatch{{Method: []string{"GET"}}}})
		req := rbac.Request{Protocol: matching.HTTP, URISANs: []string{"spiffe://a/w"}, Method: "GET", Path: path}
		allowed, notDenied := rbac.Evaluate(allow, req).Enforced.Allowed, rbac.Evaluate(deny, req).Enforced.Allowed
		if allowed && notDenied {
			t.Fatalf("%s %q allows %q but does not deny it", kind, value, path)
		}
		for _, form := range forms {
			if got, _ := filtersOf(form, allow).answers(t, req); got.allowed != allowed {
				t.Fatalf("%s: %s %q, path %q: filter allows %v", form, kind, value, path, got.allowed)
			}
			if got, _ := filtersOf(form, deny).answers(t, req); got.allowed != notDenied {
				t.Fatalf("%s: %s %q, path %q: filter denies %v", form, kind, value, path, !got.allowed)
			}
		}
	})
}

// alternating returns rules that alternately deny one identity and, for every client, one path: each needs its own
// segment.
func alternating() matching.Rules {
	var confs []resources.PermissionConf
	for i := range 40 {
		confs = append(confs, resources.PermissionConf{
			Deny: []resources.PermissionMatch{
				{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchExact, Value: fmt.Sprintf("spiffe://a/%d", i)},
					Method: []string{"POST"}},
				{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchPrefix, Value: fmt.Sprintf("spiffe://b/%d", i)}},
			},
			Allow: []resources.PermissionMatch{{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchPrefix,
				Value: fmt.Sprintf("spiffe://a/%d", i)}, Method: []string{"GET"}}},
		}, resources.PermissionConf{
			Deny: []resources.PermissionMatch{{Path: &resources.PathMatch{Type: resources.MatchExact,
				Value: fmt.Sprintf("/%d", i)}}},
			Allow: []resources.PermissionMatch{{Method: []string{"HEAD"}}},
		})
	}
	return rulesOf(confs...)
}

// TestCompiledStaysShallow checks that the depth is bounded however policies alternate, because Envoy refuses deep
// nesting, and that the answers stay those of the list.
func TestCompiledStaysShallow(t *testing.T) {
	t.Parallel()
	all := alternating()
	for from := range 2 {
		rules := matching.Rules{Items: all.Items[from:]}
		if d := depth(filtersOf(rbac.Compiled, rules).http.GetMatcher()); d < 14 || d > 32 {
			t.Errorf("depth %d", d)
		}
		list, compiled := filtersOf(rbac.List, rules), filtersOf(rbac.Compiled, rules)
		for _, req := range alternatingRequests() {
			want := rbac.Evaluate(rules, req).Enforced
			inList, _ := list.answers(t, req)
			inMaps, _ := compiled.answers(t, req)
			if inMaps != (decision{want.Name, want.Allowed}) || inMaps != inList {
				t.Errorf("%+v: compiled %+v, list %+v, evaluator %+v", req, inMaps, inList, want)
			}
		}
	}
}

func alternatingRequests() []rbac.Request {
	var out []rbac.Request
	for id := range 41 {
		for _, path := range []int{0, id, 20, 39, 40} {
			for _, domain := range []string{"a", "b"} {
				for _, method := range []string{"GET", "HEAD", "POST"} {
					out = append(out, rbac.Request{
						Protocol: matching.HTTP, URISANs: []string{fmt.Sprintf("spiffe://%s/%d", domain, id)},
						Method: method, Path: fmt.Sprintf("/%d", path),
					})
				}
			}
		}
	}
	return out
}

// depth returns the nesting depth of matchers.
func depth(m *xdsmatcher.Matcher) int {
	deepest := depthOn(m.GetOnNoMatch())
	for _, f := range m.GetMatcherList().GetMatchers() {
		deepest = max(deepest, depthOn(f.GetOnMatch()))
	}
	for _, on := range m.GetMatcherTree().GetExactMatchMap().GetMap() {
		deepest = max(deepest, depthOn(on))
	}
	for _, on := range m.GetMatcherTree().GetPrefixMatchMap().GetMap() {
		deepest = max(deepest, depthOn(on))
	}
	return deepest + 1
}

func depthOn(on *xdsmatcher.Matcher_OnMatch) int {
	if on.GetMatcher() == nil {
		return 0
	}
	return depth(on.GetMatcher())
}

// perSet is the number of requests for each set of rules: two tests of a hundred sets give more than 100,000 pairs.
const perSet = 40 * 15

func agree(t *testing.T, rt *rapid.T, rules matching.Rules, requests *rapid.Generator[rbac.Request]) {
	byForm := map[rbac.Form]filters{}
	for _, form := range forms {
		byForm[form] = filtersOf(form, rules)
	}
	for _, req := range crossed(rt, requests) {
		want := rbac.Evaluate(rules, req)
		for form, f := range byForm {
			enforced, dryRun := f.answers(t, req)
			if enforced != (decision{want.Enforced.Name, want.Enforced.Allowed}) {
				rt.Fatalf("%s: %+v: filter says %+v, evaluator %+v", form, req, enforced, want.Enforced)
			}
			if dryRun != (decision{want.DryRun.Name, want.DryRun.Allowed}) {
				rt.Fatalf("%s: %+v: shadow says %+v, evaluator %+v", form, req, dryRun, want.DryRun)
			}
		}
	}
}

// TestNothingIsOpenByAccident checks for any rules that no client without a SPIFFE ID or with two is allowed, and that
// without an allow entry no client is.
func TestNothingIsOpenByAccident(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rules := drawRules().Draw(rt, "rules")
		req := drawRequest().Draw(rt, "request")
		verdict := rbac.Evaluate(rules, req)
		if verdict.Enforced.Allowed && len(req.URISANs) != 1 {
			rt.Fatalf("allowed with the URI SANs %q", req.URISANs)
		}
		if verdict.DryRun.Allowed && !verdict.Enforced.Allowed {
			rt.Fatal("the dry run allows what is denied")
		}
		for i := range rules.Items {
			rules.Items[i].Conf.Allow, rules.Items[i].Conf.AllowWithShadowDeny = nil, nil
		}
		if rbac.Evaluate(rules, req).Enforced.Allowed {
			rt.Fatal("allowed without an allow")
		}
	})
}

// FuzzURISAN checks that for any certificate, both forms and the evaluator agree, and that no client is allowed whose
// URI SAN is not a SPIFFE ID with a path.
func FuzzURISAN(f *testing.F) {
	for _, uri := range append(identities, "spiffe://a/b", "spiffe://a/../b", "spiffe://A/b", "spiffe://a/b/",
		"spiffe://a//b", "spiffe://a/.b", "spiffe://a/...",
		"spiffe://a/b?c", "spiffe://a/%41", "spiffe:///b", "spiffe://./b", "https://a/b", "spiffe://a:1/b",
		"spiffe://a@b/c", "spiffe://a/b\n") {
		f.Add(uri)
	}
	anyone := rulesOf(resources.PermissionConf{Allow: []resources.PermissionMatch{{Method: []string{"GET"}}}})
	f.Fuzz(func(t *testing.T, uri string) {
		if !utf8.ValidString(uri) || uri == "" {
			return
		}
		req := rbac.Request{Protocol: matching.HTTP, URISANs: []string{uri}, Method: "GET", Path: "/"}
		want := rbac.Evaluate(anyone, req).Enforced
		if id, err := spiffeid.FromString(uri); want.Allowed != (err == nil && id.Path() != "") {
			t.Fatalf("%q: %+v", uri, want)
		}
		for _, form := range forms {
			if got, _ := filtersOf(form, anyone).answers(t, req); got != (decision{want.Name, want.Allowed}) {
				t.Fatalf("%s: %q: filter %+v, evaluator %+v", form, uri, got, want)
			}
		}
	})
}
