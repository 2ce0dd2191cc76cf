package resources

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// timeout checks that durations parse and that the connection timeout is positive. The others may be 0, which disables
// them.
func (v *validation) timeout(c *TimeoutConf, at *fieldPath) {
	v.duration(c.ConnectionTimeout, at.field("connectionTimeout"), true)
	v.duration(c.IdleTimeout, at.field("idleTimeout"), false)
	if c.HTTP == nil {
		return
	}
	http := at.field("http")
	v.duration(c.HTTP.RequestTimeout, http.field("requestTimeout"), false)
	v.duration(c.HTTP.StreamIdleTimeout, http.field("streamIdleTimeout"), false)
	v.duration(c.HTTP.MaxStreamDuration, http.field("maxStreamDuration"), false)
	v.duration(c.HTTP.MaxConnectionDuration, http.field("maxConnectionDuration"), false)
	v.duration(c.HTTP.RequestHeadersTimeout, http.field("requestHeadersTimeout"), false)
}

func (v *validation) duration(s *string, at *fieldPath, positive bool) {
	if s == nil {
		return
	}
	d, err := time.ParseDuration(*s)
	switch {
	case err != nil:
		v.fail(at, "%q is not a duration: write 10s or 1m30s", shorten(*s))
	case d < 0:
		v.fail(at, "is negative")
	case d == 0 && positive:
		v.fail(at, "must be more than 0")
	}
}

// routes checks the known parts of the `rules` of a route. A peer's rules may contain more.
func (v *validation) routes(raw json.RawMessage, at *fieldPath) {
	if v.peer {
		return
	}
	if text := string(raw); text == "" || text == "[]" || text == "null" {
		v.fail(at, "is required: a route without rules has no effect")
		return
	}
	if v.resource.Type == TypeMeshTCPRoute {
		decodeConf(v, raw, at, (*validation).tcpRules)
		return
	}
	decodeConf(v, raw, at, func(v *validation, rules *[]HTTPRouteRule, at *fieldPath) {
		for i := range *rules {
			v.httpRoute(&(*rules)[i], at.item(i))
		}
	})
}

// tcpRules requires one rule with a destination: connections have nothing by which to choose between two, and without one
// the route has no effect.
func (v *validation) tcpRules(rules *[]TCPRouteRule, at *fieldPath) {
	if n := len(*rules); n != 1 {
		v.fail(at, "want one rule, got %d: connections have nothing to match: name several backendRefs with weights", n)
	}
	for i := range *rules {
		refs, at := (*rules)[i].Default.BackendRefs, at.item(i).field("default").field("backendRefs")
		if len(refs) == 0 {
			v.fail(at, "is required")
		}
		v.backendRefs(refs, at)
	}
}

func (v *validation) httpRoute(rule *HTTPRouteRule, at *fieldPath) {
	for i := range rule.Matches {
		v.httpMatch(&rule.Matches[i], at.field("matches").item(i))
	}
	v.mirrorCount(rule.Default.Filters, at.field("default").field("filters"))
	for i := range rule.Default.Filters {
		f := &rule.Default.Filters[i]
		inside := at.field("default").field("filters").item(i)
		if !slices.Contains(filterTypes, f.Type) {
			v.fail(inside.field("type"), "unknown filter %q, want one of %s", shorten(f.Type), strings.Join(filterTypes, ", "))
		}
		v.routeFilter(f, inside)
	}
	v.backendRefs(rule.Default.BackendRefs, at.field("default").field("backendRefs"))
}

var (
	filterTypes = []string{"RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite",
		"RequestMirror"}
	routeMethods = []string{"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"}
	headerMatch  = []string{"", "Exact", "Present", "RegularExpression", "Absent", "Prefix"}
	queryMatch   = []string{"", "Exact", "RegularExpression"}
)

func (v *validation) httpMatch(m *HTTPRouteMatch, at *fieldPath) {
	if m.Path != nil {
		if reason := routePathProblem(m.Path); reason != "" {
			v.fail(at.field("path"), "%s", reason)
		}
	}
	if m.Method != "" && !slices.Contains(routeMethods, m.Method) {
		v.fail(at.field("method"), "%q is not one of %s", shorten(m.Method), strings.Join(routeMethods, ", "))
	}
	values := func(name string, matches []RouteValueMatch, types []string) {
		for i := range matches {
			inside := at.field(name).item(i)
			if !slices.Contains(types, matches[i].Type) {
				v.fail(inside.field("type"), "want one of %s, got %q", strings.Join(types[1:], ", "), shorten(matches[i].Type))
			}
			if matches[i].Name == "" {
				v.fail(inside.field("name"), "is required")
			}
			if matches[i].Type == MatchRegularExpression {
				v.regex(matches[i].Value, inside.field("value"))
			}
		}
	}
	values("headers", m.Headers, headerMatch)
	values("queryParams", m.QueryParams, queryMatch)
}

func (v *validation) regex(s string, at *fieldPath) {
	if _, err := regexp.Compile(s); err != nil || len(s) > maxRegexBytes {
		v.fail(at, "%q is not a regular expression of RE2 of at most %d bytes", shorten(s), maxRegexBytes)
	} else if _, _, err := ValueExpression(s); err != nil {
		v.fail(at, "%q cannot be enforced: %v", shorten(s), err)
	}
}

func routePathProblem(m *RoutePathMatch) string {
	switch m.Type {
	case MatchExact, "PathPrefix":
		if !strings.HasPrefix(m.Value, "/") {
			return fmt.Sprintf("want a path that begins with /, got %q", shorten(m.Value))
		}
	case MatchRegularExpression:
		if problem := pathProblem(&PathMatch{Type: MatchRegularExpression, Value: m.Value}); problem != "" {
			return problem
		}
		if _, _, err := ValueExpression(m.Value); err != nil {
			return fmt.Sprintf("%q cannot be enforced: %v", shorten(m.Value), err)
		}
	default:
		return fmt.Sprintf("want the type Exact, PathPrefix or RegularExpression, got %q", shorten(m.Type))
	}
	return ""
}

func (v *validation) backendRefs(refs []BackendRef, at *fieldPath) {
	rules := refRules{
		kinds:    []string{KindMeshService, KindMeshServiceSubset, KindMeshExternalService, KindMeshMultiZoneService},
		sections: []string{KindMeshService, KindMeshExternalService, KindMeshMultiZoneService},
	}
	for i := range refs {
		inside := at.item(i)
		v.targetRef(&refs[i].TargetRef, inside, rules)
		if refs[i].Port > maxPort {
			v.fail(inside.field("port"), "want 1 to %d, got %d", maxPort, refs[i].Port)
		}
		if refs[i].Kind == KindMeshMultiZoneService && refs[i].Port == 0 && refs[i].SectionName == "" {
			v.fail(inside.field("port"), "is required for a MeshMultiZoneService")
		}
	}
}
