package xds

import (
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/causeway-mesh/causeway/resources"
)

// routeMatch converts a match of a MeshHTTPRoute; an empty one matches every request.
func routeMatch(m *resources.HTTPRouteMatch) *routev3.RouteMatch {
	out := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
	if m.Path != nil {
		matchPath(out, m.Path)
	}
	if m.Method != "" {
		out.Headers = append(out.Headers, headerMatch(&resources.RouteValueMatch{Name: ":method", Value: m.Method}))
	}
	for i := range m.Headers {
		out.Headers = append(out.Headers, headerMatch(&m.Headers[i]))
	}
	for i := range m.QueryParams {
		q := &m.QueryParams[i]
		out.QueryParameters = append(out.QueryParameters, &routev3.QueryParameterMatcher{
			Name: q.Name, QueryParameterMatchSpecifier: &routev3.QueryParameterMatcher_StringMatch{StringMatch: stringMatch(q)},
		})
	}
	return out
}

// matchPath sets the path match. A prefix ends at a path segment; "/" is a prefix of every path.
func matchPath(out *routev3.RouteMatch, m *resources.RoutePathMatch) {
	switch m.Type {
	case "Exact":
		out.PathSpecifier = &routev3.RouteMatch_Path{Path: m.Value}
	case "RegularExpression":
		out.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: regexMatcher(m.Value)}
	default:
		if prefix := strings.TrimRight(m.Value, "/"); prefix != "" {
			out.PathSpecifier = &routev3.RouteMatch_PathSeparatedPrefix{PathSeparatedPrefix: prefix}
		}
	}
}

func stringMatch(m *resources.RouteValueMatch) *matcherv3.StringMatcher {
	switch m.Type {
	case "RegularExpression":
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: regexMatcher(m.Value)}}
	case "Prefix":
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: m.Value}}
	}
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: m.Value}}
}

func headerMatch(m *resources.RouteValueMatch) *routev3.HeaderMatcher {
	out := &routev3.HeaderMatcher{Name: m.Name}
	switch m.Type {
	case "Present":
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}
	case "Absent":
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_PresentMatch{PresentMatch: false}
	default:
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_StringMatch{StringMatch: stringMatch(m)}
	}
	return out
}
