package rbac

import (
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// elsewhereHeaders make some frameworks and servers treat a request as one for another path. gunicorn strips the value
// of SCRIPT_NAME from the path, in early versions for every client and since version 22 for its own machine: with /x,
// it serves /x/admin as /admin. WSGI applications behind a prefix do the same with X-Script-Name. X-Envoy-Original-Path
// is not among them: a proxy that rewrites a path for a MeshHTTPRoute adds it.
var elsewhereHeaders = Spellings("x-original-url", "x-rewrite-url", "script-name", "x-script-name")

// destination is the header with the second path of a copyingMethod, which writes there. Source: RFC 4918, sections 9.8
// and 9.9.
const destination = "destination"

var copyingMethods = []string{"COPY", "MOVE"}

// elsewhere matches a request that cannot be judged by its path.
var elsewhere = func() *predicate {
	var list []*predicate
	for _, name := range elsewhereHeaders {
		list = append(list, single(header(name), stringMatch(test{resources.MatchRegularExpression, `.*`})))
	}
	copies := single(methodHeader, stringMatch(test{resources.MatchRegularExpression, strings.Join(copyingMethods, "|")}))
	there := single(header(destination), stringMatch(test{resources.MatchRegularExpression, `.*`}))
	return anyOf(append(list, allOf([]*predicate{copies, there})))
}()

// isElsewhere is the reference for elsewhere.
func isElsewhere(req *Request) bool {
	said := func(name string) bool { _, there := req.Headers[name]; return there }
	return slices.ContainsFunc(elsewhereHeaders, said) || slices.Contains(copyingMethods, req.Method) && said(destination)
}

// toldBy records by what the rules distinguish requests of one client. The matchers in front of the rules depend on it.
type toldBy struct{ methods, paths bool }

func toldByIn(rules matching.Rules) toldBy {
	return toldBy{methods: namesMethod(rules), paths: namesPath(rules)}
}

// namesPath reports whether some entry of the rules has a path.
func namesPath(rules matching.Rules) bool {
	names := func(m resources.PermissionMatch) bool { return m.Path != nil }
	for i := range rules.Items {
		c := &rules.Items[i].Conf
		if slices.ContainsFunc(c.Deny, names) || slices.ContainsFunc(c.Allow, names) ||
			slices.ContainsFunc(c.AllowWithShadowDeny, names) {
			return true
		}
	}
	return false
}
