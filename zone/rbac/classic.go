package rbac

import (
	"regexp"
	"slices"
	"strings"

	rbacconfig "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	envoymatcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// NameUnusualPath denies, in the classic form, a path that Envoy would refuse or rewrite before it evaluates the rules.
// A gRPC server does not normalise paths, and no method has such a name.
const NameUnusualPath = "unusual-path"

// grpcMethod is the HTTP method of every gRPC request.
const grpcMethod = "POST"

// unusualPath matches the paths that NormalizePath refuses or changes.
const unusualPath = `(?s)(?:[^/].*)?` + // does not begin with a slash
	`|.*[^!"$-~].*` + // blanks, control characters, a fragment, non-ASCII
	`|[^?]*["<>^` + "`" + `{|}\\].*` +
	`|[^?]*%(?:2[dDeEfF]|3[0-9]|[46][1-9a-fA-F]|5[0-9aAcCfF]|7[0-9aAeE]|00).*` + // needless escapes, slashes, NUL
	`|[^?]*//.*|[^?]*/\.{1,2}(?:[/;?].*)?`

// Classic holds the two filters, evaluated in this order, for a server that does not support matchers: a gRPC server,
// which is both the application and its proxy. Such a server sees the client's identity, the headers, and the path,
// which is the full name of the method.
type Classic struct {
	// Deny denies what any of its policies matches. Allow denies what none of its policies matches.
	Deny, Allow *httprbac.RBAC
}

// ClassicFilters writes the rules of an inbound in the classic form, one policy for each KRI. The filters never allow a
// POST that Evaluate denies: a condition that the server cannot see (ClassicWarnings lists them) removes an allow entry
// and widens a deny entry. There is no shadow.
//
// The classic form cannot express that a certificate has several URI SANs: the server must refuse those in its
// handshake.
func ClassicFilters(rules matching.Rules) Classic {
	deny, allow := denyUnusual(), map[string]*rbacconfig.Policy{}
	for _, s := range steps(rules, matching.HTTP, false) {
		into := allow
		if s.deny {
			into = deny
		}
		for i := range s.entries {
			if principal := classicEntry(&s.entries[i], s.deny); principal != nil {
				addPrincipal(into, s.name, principal)
			}
		}
	}
	return Classic{Deny: classicFilter(rbacconfig.RBAC_DENY, deny), Allow: classicFilter(rbacconfig.RBAC_ALLOW, allow)}
}

// DenyAllClassic denies every request. Either filter has this value until the rules arrive.
func DenyAllClassic() *httprbac.RBAC { return classicFilter(rbacconfig.RBAC_ALLOW, nil) }

func classicFilter(action rbacconfig.RBAC_Action, policies map[string]*rbacconfig.Policy) *httprbac.RBAC {
	return &httprbac.RBAC{Rules: &rbacconfig.RBAC{Action: action, Policies: policies}}
}

// denyUnusual returns the policies that no rule can disable.
func denyUnusual() map[string]*rbacconfig.Policy {
	out := map[string]*rbacconfig.Policy{}
	addPrincipal(out, NameMalformedURISAN, authenticated(test{resources.MatchRegularExpression, malformedSPIFFEID}))
	addPrincipal(out, NameUnusualPath, urlPath(test{resources.MatchRegularExpression, unusualPath}))
	return out
}

// addPrincipal adds a client, or a condition on requests, to a policy. Conditions on requests are principals too,
// because a policy cannot tie one of its permissions to one of its principals.
func addPrincipal(policies map[string]*rbacconfig.Policy, name string, p *rbacconfig.Principal) {
	if policies[name] == nil {
		policies[name] = &rbacconfig.Policy{Permissions: []*rbacconfig.Permission{{Rule: &rbacconfig.Permission_Any{Any: true}}}}
	}
	policies[name].Principals = append(policies[name].Principals, p)
}

// classicEntry writes an entry as a principal. It returns nil for an entry that never matches.
func classicEntry(e *entry, deny bool) *rbacconfig.Principal {
	if len(e.method) > 0 && !slices.ContainsFunc(e.method, func(t test) bool { return t.value == grpcMethod }) {
		return nil
	}
	if !deny &&
		(len(e.sni) > 0 || slices.ContainsFunc(e.headers, func(h headerTest) bool { return !seenByGRPC(h.name) })) {
		return nil
	}
	var parts []*rbacconfig.Principal
	if len(e.identity) > 0 {
		parts = append(parts, anyPrincipal(e.identity, authenticated))
	}
	if len(e.path) > 0 {
		parts = append(parts, anyPrincipal(e.path, urlPath))
	}
	if e.clear {
		parts = append(parts, &rbacconfig.Principal{Identifier: &rbacconfig.Principal_NotId{NotId: urlPath(climbingTest)}})
	}
	for _, h := range e.headers {
		parts = append(parts, &rbacconfig.Principal{Identifier: &rbacconfig.Principal_Header{Header: &routev3.HeaderMatcher{
			Name: h.name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: classicMatch(h.test)},
		}}})
	}
	switch len(parts) {
	case 0:
		return &rbacconfig.Principal{Identifier: &rbacconfig.Principal_Any{Any: true}}
	case 1:
		return parts[0]
	}
	return &rbacconfig.Principal{Identifier: &rbacconfig.Principal_AndIds{AndIds: &rbacconfig.Principal_Set{Ids: parts}}}
}

func anyPrincipal(tests []test, as func(test) *rbacconfig.Principal) *rbacconfig.Principal {
	if len(tests) == 1 {
		return as(tests[0])
	}
	set := &rbacconfig.Principal_Set{}
	for _, t := range tests {
		set.Ids = append(set.Ids, as(t))
	}
	return &rbacconfig.Principal{Identifier: &rbacconfig.Principal_OrIds{OrIds: set}}
}

func authenticated(t test) *rbacconfig.Principal {
	return &rbacconfig.Principal{Identifier: &rbacconfig.Principal_Authenticated_{
		Authenticated: &rbacconfig.Principal_Authenticated{PrincipalName: classicMatch(t)},
	}}
}

func urlPath(t test) *rbacconfig.Principal {
	return &rbacconfig.Principal{Identifier: &rbacconfig.Principal_UrlPath{
		UrlPath: &envoymatcher.PathMatcher{Rule: &envoymatcher.PathMatcher_Path{Path: classicMatch(t)}},
	}}
}

func classicMatch(t test) *envoymatcher.StringMatcher {
	switch t.kind {
	case resources.MatchPrefix:
		return &envoymatcher.StringMatcher{MatchPattern: &envoymatcher.StringMatcher_Prefix{Prefix: t.value}}
	case resources.MatchRegularExpression:
		return &envoymatcher.StringMatcher{MatchPattern: &envoymatcher.StringMatcher_SafeRegex{SafeRegex: &envoymatcher.RegexMatcher{Regex: t.value}}}
	}
	return &envoymatcher.StringMatcher{MatchPattern: &envoymatcher.StringMatcher_Exact{Exact: t.value}}
}

// ordinaryHeader matches the header names that every implementation accepts in a matcher and passes on unchanged.
var ordinaryHeader = regexp.MustCompile(`\A[a-z0-9_.!#$%&'*+^|~-]+\z`)

// seenByGRPC reports whether a header, by its lower-case name, can be matched. gRPC's own headers cannot, binary ones
// arrive decoded, and those of the connection are not passed on.
func seenByGRPC(name string) bool {
	switch name {
	case "host", "te", "content-type", "user-agent", "connection":
		return false
	}
	return ordinaryHeader.MatchString(name) && !strings.HasPrefix(name, "grpc-") && !strings.HasSuffix(name, "-bin")
}
