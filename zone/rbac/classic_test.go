package rbac_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacconfig "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	envoymatcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// classic evaluates the two classic filters as a gRPC server does: every request is a POST, the server name is unknown,
// and any URI SAN may match.
type classic struct {
	rbac.Classic
	expressions map[string]*regexp.Regexp
}

func classicOf(rules matching.Rules) *classic {
	return &classic{rbac.ClassicFilters(rules), map[string]*regexp.Regexp{}}
}

func (c *classic) allows(req *rbac.Request) bool {
	return c.passes(c.Deny, req) && c.passes(c.Allow, req)
}

func (c *classic) passes(f *httprbac.RBAC, req *rbac.Request) bool {
	return c.matched(f, req) == (f.GetRules().GetAction() == rbacconfig.RBAC_ALLOW)
}

func (c *classic) matched(f *httprbac.RBAC, req *rbac.Request) bool {
	for _, p := range f.GetRules().GetPolicies() {
		if len(p.GetPermissions()) != 1 || !p.GetPermissions()[0].GetAny() {
			panic("a permission with conditions")
		}
		if slices.ContainsFunc(p.GetPrincipals(), func(p *rbacconfig.Principal) bool { return c.principal(p, req) }) {
			return true
		}
	}
	return false
}

func (c *classic) principal(p *rbacconfig.Principal, req *rbac.Request) bool {
	is := func(p *rbacconfig.Principal) bool { return c.principal(p, req) }
	isNot := func(p *rbacconfig.Principal) bool { return !c.principal(p, req) }
	switch id := p.GetIdentifier().(type) {
	case *rbacconfig.Principal_Any:
		return id.Any
	case *rbacconfig.Principal_AndIds:
		return !slices.ContainsFunc(id.AndIds.GetIds(), isNot)
	case *rbacconfig.Principal_OrIds:
		return slices.ContainsFunc(id.OrIds.GetIds(), is)
	case *rbacconfig.Principal_Authenticated_:
		names := req.URISANs
		if len(names) == 0 {
			names = []string{""}
		}
		return slices.ContainsFunc(names,
			func(name string) bool { return c.compare(id.Authenticated.GetPrincipalName(), name) })
	case *rbacconfig.Principal_NotId:
		return isNot(id.NotId)
	case *rbacconfig.Principal_UrlPath:
		return c.compare(id.UrlPath.GetPath(), req.Path)
	case *rbacconfig.Principal_Header:
		name := id.Header.GetName()
		if name != strings.ToLower(name) || strings.HasPrefix(name, "grpc-") || strings.HasPrefix(name, ":") {
			panic("gRPC refuses the header " + name)
		}
		value, ok := req.Headers[name]
		return ok && c.compare(id.Header.GetStringMatch(), value)
	}
	panic("gRPC refuses " + p.String())
}

func (c *classic) compare(m *envoymatcher.StringMatcher, value string) bool {
	switch kind := m.GetMatchPattern().(type) {
	case *envoymatcher.StringMatcher_Exact:
		return value == kind.Exact
	case *envoymatcher.StringMatcher_Prefix:
		if kind.Prefix == "" {
			panic("gRPC refuses an empty prefix")
		}
		return strings.HasPrefix(value, kind.Prefix)
	case *envoymatcher.StringMatcher_SafeRegex:
		text := kind.SafeRegex.GetRegex()
		if c.expressions[text] == nil {
			c.expressions[text] = regexp.MustCompile("^(?:" + text + ")$")
		}
		return c.expressions[text].MatchString(value)
	}
	panic("gRPC refuses " + m.String())
}

// withStrangeHeaders adds to some rules a header that gRPC servers cannot match.
func withStrangeHeaders(rt *rapid.T, rules matching.Rules) matching.Rules {
	for i := range rules.Items {
		if len(rules.Items[i].Headers) > 0 && rapid.IntRange(0, 3).Draw(rt, "strange") == 0 {
			rules.Items[i].Headers[0].Name = rapid.SampledFrom([]string{"grpc-x", "Host", "x-bin", ":path", ":scheme",
				"te"}).Draw(rt, "name")
		}
	}
	return rules
}

// TestClassicAgreesWithEvaluator checks that the classic form decides as the reference does wherever it can express the
// rules, and never allows what the reference denies.
func TestClassicAgreesWithEvaluator(t *testing.T) {
	t.Parallel()
	equal, stricter, allowed := 0, 0, 0
	check := func(rt *rapid.T, rules matching.Rules) {
		c, exact := classicOf(rules), len(rbac.ClassicWarnings(rules)) == 0
		for i, req := range crossed(rt, drawRequest()) {
			if i%3 > 0 || req.Protocol != matching.HTTP || len(req.URISANs) > 1 {
				continue // the handshake refuses several URI SANs
			}
			req.Method = "POST"
			got, want := c.allows(&req), rbac.Evaluate(rules, req).Enforced.Allowed
			if path, refused := rbac.NormalizePath(req.Path); refused != "" || path != req.Path {
				if got {
					rt.Fatalf("%+v: allowed with a path that an Envoy writes in another way", req)
				}
				continue
			}
			if got && !want || exact && got != want {
				rt.Fatalf("%+v: the classic form allows: %v, evaluator: %v; all can be said: %v", req, got, want, exact)
			}
			if exact {
				equal++
			} else if want {
				stricter++
			}
			if got {
				allowed++
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) { check(rt, withStrangeHeaders(rt, drawRules().Draw(rt, "rules"))) })
	rapid.Check(t, func(rt *rapid.T) { check(rt, drawManyRules().Draw(rt, "rules")) })
	share := 1
	if testing.Short() {
		share = 10 // of the sample
	}
	if equal < 1000/share || stricter < 50/share || allowed < 100/share {
		t.Errorf("%d compared for equality, %d allowed by the reference where not all can be said, %d allowed", equal,
			stricter, allowed)
	}
}

// TestClassicDeniesUnusualPaths checks that the denied paths are exactly those that Envoy, with the settings of every
// inbound, refuses or rewrites.
func TestClassicDeniesUnusualPaths(t *testing.T) {
	t.Parallel()
	c := classicOf(rulesOf(resources.PermissionConf{Allow: []resources.PermissionMatch{{Method: []string{"POST"}}}}))
	check := func(t rapid.TB, path string) {
		normal, refused := rbac.NormalizePath(path)
		got := c.allows(&rbac.Request{Protocol: matching.HTTP, URISANs: []string{"spiffe://a/w"}, Method: "POST", Path: path})
		slashes := strings.HasPrefix(normal+"?", "//?") // Envoy keeps these two
		if want := refused == "" && normal == path && !slashes; got != want {
			t.Errorf("%q: allowed %v, normalised %q, refused %q", path, got, normal, refused)
		}
	}
	for _, path := range []string{"", "/", "shop.Orders/Put", "/shop.Orders/Put", "/shop.Orders/Put?", "/a?//..%2f",
		"/a?#", "/a/.", "/.", "/..a", "/a\xff", "/a\n"} {
		check(t, path)
	}
	corpus, err := os.ReadFile("testdata/paths.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(corpus)) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(line, "# ") {
			check(t, fields[0])
		}
	}
	piece := rapid.OneOf(rapid.SampledFrom([]string{"/", "/", ".", "..", ";", "%", "%2", "%2f", "%2E", "%41", "%5b",
		"%5C", "%7e", "%7F", "%00", "?", "#", "a", "\\", "~", "{", " "}),
		rapid.Map(rapid.Byte(), func(b byte) string { return string([]byte{b}) }))
	rapid.Check(t, func(rt *rapid.T) {
		for range 50 {
			check(rt, "/"+strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(rt, "path"), ""))
		}
	})
}

// TestClassicWarnings checks that each condition that a gRPC server cannot see is reported, and nothing else.
func TestClassicWarnings(t *testing.T) {
	t.Parallel()
	sni := &resources.SNIMatch{Type: resources.MatchExact, Value: "x"}
	id := &resources.SpiffeIDMatch{Type: resources.MatchExact, Value: "spiffe://a/b"}
	rules := rulesOf(resources.PermissionConf{
		Deny: []resources.PermissionMatch{{SNI: sni}, {SNI: sni, SpiffeID: id},
			{SpiffeID: id, Path: &resources.PathMatch{Type: resources.MatchPrefix, Value: "/a"}}},
		Allow: []resources.PermissionMatch{{SpiffeID: id}, {SNI: sni}, {Method: []string{"GET"}}},
	}, resources.PermissionConf{AllowWithShadowDeny: []resources.PermissionMatch{{SpiffeID: id}}})
	rules.Items[1].Headers = []matching.HeaderMatch{{Name: "x-a", Expression: "a"},
		{Name: "Grpc-Encoding", Expression: "a"}}
	var got []string
	for _, w := range rbac.ClassicWarnings(rules) {
		got = append(got, w.Field+": "+w.Text)
	}
	want := []string{
		"rules[0].default.deny[0]: a gRPC server does not report the server name (sni), so the entry denies everybody there",
		"rules[0].default.deny[1]: a gRPC server does not report the server name (sni), so the entry denies without it there",
		"rules[0].default.allow[1]: a gRPC server does not report the server name (sni), so the entry allows nothing there",
		"rules[0].default: a gRPC server cannot match the header Grpc-Encoding, so nothing is allowed there",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
