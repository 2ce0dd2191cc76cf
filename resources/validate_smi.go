package resources

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// anyMethod matches any method.
const anyMethod = "*"

// trafficTarget checks a TrafficTarget. Source: seed 003, "TrafficTarget".
func (v *validation) trafficTarget(t *TrafficTarget) {
	spec := top("spec")
	v.subject(&t.Destination, spec.field("destination"), true)
	if ns := t.Destination.Namespace; ns != "" && v.customNamespace() != "" && ns != v.customNamespace() {
		v.fail(spec.field("destination").field("namespace"),
			"is %q: a TrafficTarget in the namespace %s opens service accounts of that namespace only", ns, v.customNamespace())
	}
	if len(t.Sources) == 0 {
		v.fail(spec.field("sources"), "is empty: give at least one service account")
	}
	for i := range t.Sources {
		at := spec.field("sources").item(i)
		v.subject(&t.Sources[i], at, false)
	}
	at, rules := spec.field("rules"), t.Rules
	if len(t.Specs) > 0 {
		at, rules = spec.field("specs"), t.Specs
	}
	switch {
	case len(t.Specs) > 0 && len(t.Rules) > 0:
		v.fail(at, "cannot be combined with rules: they are two spellings of the same list")
	case len(rules) == 0:
		v.fail(at, "is empty: give at least one %s or %s", KindHTTPRouteGroup, KindTCPRoute)
	}
	for i := range rules {
		v.trafficRule(&rules[i], at.item(i))
	}
}

func (v *validation) subject(s *TrafficSubject, at *fieldPath, destination bool) {
	if s.Kind != KindServiceAccount {
		v.fail(at.field("kind"), "want %s, got %q", KindServiceAccount, shorten(s.Kind))
	}
	switch {
	case s.Name == "":
		v.fail(at.field("name"), "is required")
	case spiffeid.ValidatePathSegment(s.Name) != nil:
		v.fail(at.field("name"), "%q cannot be part of a SPIFFE ID: want letters, digits, '.', '-' and '_'", shorten(s.Name))
	}
	if s.Namespace != "" {
		v.label(at.field("namespace"), s.Namespace)
	} else if v.resource.HomeNamespace() == "" {
		v.fail(at.field("namespace"),
			"is required, here or for the whole resource: it is part of the service account's identity")
	}
	switch {
	case s.Port == nil:
	case !destination:
		v.fail(at.field("port"), "only a destination has a port: leave it out")
	default:
		v.port(*s.Port, at.field("port"))
	}
}

func (v *validation) trafficRule(r *TrafficRule, at *fieldPath) {
	switch r.Kind {
	case KindHTTPRouteGroup:
	case KindTCPRoute:
		if len(r.Matches) > 0 {
			v.fail(at.field("matches"), "a %s has no named matches: leave it out", KindTCPRoute)
		}
	default:
		v.fail(at.field("kind"), "want %s or %s, got %q", KindHTTPRouteGroup, KindTCPRoute, shorten(r.Kind))
	}
	if !isSubdomain(r.Name) {
		v.fail(at.field("name"), "%q is not a name: want %s", shorten(r.Name), wantSubdomain)
	}
}

func (v *validation) httpRouteGroup(g *HTTPRouteGroup) {
	at := top("spec").field("matches")
	if len(g.Matches) == 0 {
		v.fail(at, "is empty: give at least one")
	}
	taken := map[string]*fieldPath{}
	for i := range g.Matches {
		m, inside := &g.Matches[i], at.item(i)
		if m.Name == "" {
			v.fail(inside.field("name"), "is required")
		}
		v.unique(taken, m.Name, inside.field("name"))
		if m.PathRegex != "" {
			v.expression(m.PathRegex, inside.field("pathRegex"))
			if reason := pathExpressionProblem(m.PathRegex); reason != "" && expressionProblem(m.PathRegex) == "" && !v.peer {
				v.fail(inside.field("pathRegex"), "%s", reason)
			}
		}
		for j, method := range m.Methods {
			if method != anyMethod && (len(method) > MaxShortNameBytes || !methodToken.MatchString(method)) {
				v.fail(inside.field("methods").item(j),
					"%q is not an HTTP method: want upper-case letters, for example GET, or *", shorten(method))
			}
		}
		for name, expression := range m.Headers {
			header := inside.field("headers").field(name)
			if !headerName.MatchString(name) {
				v.fail(header, "%q is not the name of a header", shorten(name))
			}
			v.expression(expression, header)
		}
	}
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")

// expression checks a regular expression, which must match a whole value.
func (v *validation) expression(s string, at *fieldPath) {
	if reason := expressionProblem(s); reason != "" {
		v.fail(at, "%s", reason)
	}
}

func expressionProblem(s string) string {
	if s == "" || len(s) > maxRegexBytes {
		return fmt.Sprintf("want a regular expression of 1 to %d bytes", maxRegexBytes)
	}
	if _, err := regexp.Compile(s); err != nil {
		return fmt.Sprintf("%q is not a regular expression of RE2: %v", shorten(s), err)
	}
	if _, _, err := ValueExpression(s); err != nil {
		return fmt.Sprintf("%q cannot be enforced: %v", shorten(s), err)
	}
	return ""
}

func (v *validation) tcpRoute(r *TCPRoute) {
	if r.Matches == nil {
		return
	}
	at := top("spec").field("matches").field("ports")
	for i, port := range r.Matches.Ports {
		v.port(port, at.item(i))
		if slices.Contains(r.Matches.Ports[:i], port) {
			v.fail(at.item(i), "port %d appears twice", port)
		}
	}
}
