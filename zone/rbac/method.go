package rbac

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// overridingHeaders ask an application to treat a request as one of another method. A header's name may have
// underscores instead of hyphens: applications behind CGI and WSGI read both as the same name.
var overridingHeaders = Spellings("x-http-method-override", "x-http-method", "x-method-override")

// overridingParameter is the query parameter that does the same, in every spelling. PHP takes a dot for an underscore,
// drops blanks in front, and ends a name at NUL.
var overridingParameter = `[^?]*\?(?:.*[&;])?(?:\+|%20)*(?:[._]|%2e|%5f)` + spelledOut("method") + `(?:%00.*)?=.*`

var overridingQuery = regexp.MustCompile(`\A(?i:` + overridingParameter + `)\z`)

// unusualMethod matches a request that cannot be judged by its method.
var unusualMethod = func() *predicate {
	registered := single(methodHeader,
		stringMatch(test{resources.MatchRegularExpression, strings.Join(resources.RegisteredMethods(), "|")}))
	list := []*predicate{{MatchType: &wrappedNot{NotMatcher: registered}}}
	for _, name := range overridingHeaders {
		list = append(list, single(header(name), stringMatch(test{resources.MatchRegularExpression, `.*`})))
	}
	return anyOf(append(list,
		single(pathHeader, stringMatch(test{resources.MatchRegularExpression, `(?i)` + overridingParameter}))))
}()

const get, head = "GET", "HEAD"

// deniedMethods returns the methods that a deny of these is about: applications answer HEAD with what they do for GET,
// and leave out the body only at the end. An allow of GET does not include HEAD.
func deniedMethods(methods []string) []string {
	if !slices.Contains(methods, get) || slices.Contains(methods, head) {
		return methods
	}
	return append(slices.Clone(methods), head)
}

// isUnusualMethod is the reference for unusualMethod.
func isUnusualMethod(req *Request) bool {
	overridden := func(name string) bool { _, there := req.Headers[name]; return there }
	return !resources.IsRegisteredMethod(req.Method) || slices.ContainsFunc(overridingHeaders, overridden) ||
		overridingQuery.MatchString(req.Path)
}

// namesMethod reports whether some entry of the rules is about a method.
func namesMethod(rules matching.Rules) bool {
	names := func(m resources.PermissionMatch) bool { return len(m.Method) > 0 }
	for i := range rules.Items {
		c := &rules.Items[i].Conf
		if slices.ContainsFunc(c.Deny, names) || slices.ContainsFunc(c.Allow, names) ||
			slices.ContainsFunc(c.AllowWithShadowDeny, names) {
			return true
		}
	}
	return false
}

// Spellings returns each name of a header in every combination of hyphens and underscores: applications behind CGI and
// WSGI read all of them as one. The names are in lower case.
func Spellings(names ...string) []string {
	var out []string
	for _, name := range names {
		all := []string{""}
		for i, part := range strings.Split(name, "-") {
			if i == 0 {
				all[0] = part
				continue
			}
			var next []string
			for _, s := range all {
				next = append(next, s+"-"+part, s+"_"+part)
			}
			all = next
		}
		out = append(out, all...)
	}
	return out
}

// spelledOut matches a word of a query with any of its characters escaped, for `(?i)`.
func spelledOut(word string) string {
	var out strings.Builder
	for _, c := range []byte(word) {
		fmt.Fprintf(&out, "(?:%c|%%%02x)", c, c)
	}
	return out.String()
}
