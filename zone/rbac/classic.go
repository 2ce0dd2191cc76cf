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

// NameUnusualPath denies, in the classic form, a path that an Envoy would have refused or written in another way before its
// rules were asked: a gRPC server does not normalise paths, and no method has such a name.
const NameUnusualPath = "unusual-path"

// grpcMethod is the HTTP method of every gRPC request.
const grpcMethod = "POST"

// unusualPath is for what NormalizePath refuses or changes.
const unusualPath = `(?s)(?:[^/].*)?` + // it does not begin with a slash
	`|.*[^!"$-~].*` + // blanks, control characters, a fragment, other than ASCII
	`|[^?]*["<>^` + "`" + `{|}\\].*` +
	`|[^?]*%(?:2[dDeEfF]|3[0-9]|[46][1-9a-fA-F]|5[0-9aAcCfF]|7[0-9aAeE]|00).*` + // escapes of what needs none, of slashes, of NUL
	`|[^?]*//.*|[^?]*/\.{1,2}(?:[/;?].*)?`

// Classic are the two filters, asked in this order, of a server that knows no matchers: gRPC's own, which is its application's
// proxy at the same time. Such a server sees the client's identity, the path, which is the full name of the method, and headers.
type Classic struct {
	// Deny denies what one of its policies matches, Allow what none of its policies does.
	Deny, Allow *httprbac.RBAC
}

// ClassicFilters writes the rules of an inbound in the classic form, a policy for each KRI. They never allow what Evaluate denies a
// POST: what the server cannot see (ClassicWarnings tells of it) makes an allow entry disappear and a deny entry wider. There
// is no shadow.
//
// What cannot be said is that a certificate has several URI SANs: the server must refuse those in its handshake.
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

// DenyAllClassic denies every request: what either filter is until the rules arrive.
func DenyAllClassic() *httprbac.RBAC { return classicFilter(rbacconfig.RBAC_ALLOW, nil) }

func classicFilter(action rbacconfig.RBAC_Action, policies map[string]*rbacconfig.Policy) *httprbac.RBAC {
	return &httprbac.RBAC{Rules: &rbacconfig.RBAC{Action: action, Policies: policies}}
}

// denyUnusual are the policies that no rule can turn off.
func denyUnusual() map[string]*rbacconfig.Policy {
	out := map[string]*rbacconfig.Policy{}
	addPrincipal(out, NameMalformedURISAN, authenticated(test{resources.MatchRegularExpression, malformedSPIFFEID}))
	addPrincipal(out, NameUnusualPath, urlPath(test{resources.MatchRegularExpression, unusualPath}))
	return out
}

// addPrincipal makes a client, or a request, one of those that a policy is for. The conditions on requests are principals too: a policy's
// permissions could not be tied to one of its principals.
func addPrincipal(policies map[string]*rbacconfig.Policy, name string, p *rbacconfig.Principal) {
	if policies[name] == nil {
		policies[name] = &rbacconfig.Policy{Permissions: []*rbacconfig.Permission{{Rule: &rbacconfig.Permission_Any{Any: true}}}}
	}
	policies[name].Principals = append(policies[name].Principals, p)
}

// classicEntry is an entry as a principal; nil for one that never matches.
func classicEntry(e *entry, deny bool) *rbacconfig.Principal {
	if len(e.method) > 0 && !slices.ContainsFunc(e.method, func(t test) bool { return t.value == grpcMethod }) {
		return nil
	}
	if !deny && (len(e.sni) > 0 || slices.ContainsFunc(e.headers, func(h headerTest) bool { return !seenByGRPC(h.name) })) {
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

// ordinaryHeader is a name that every implementation takes in a matcher and hands over as it was sent.
var ordinaryHeader = regexp.MustCompile(`\A[a-z0-9_.!#$%&'*+^|~-]+\z`)

// seenByGRPC reports whether a header, by its lower-case name, can be matched: gRPC's own ones cannot, binary ones arrive decoded, and
// those of the connection are not passed on.
func seenByGRPC(name string) bool {
	switch name {
	case "host", "te", "content-type", "user-agent", "connection":
		return false
	}
	return ordinaryHeader.MatchString(name) && !strings.HasPrefix(name, "grpc-") && !strings.HasSuffix(name, "-bin")
}
