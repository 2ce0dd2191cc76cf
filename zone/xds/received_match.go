package xds

import (
	"regexp"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/causeway-mesh/causeway/resources"
)

// combination is one choice of each type, with the match for all of them.
type combination struct {
	chosen  []*choice
	path    *resources.PathMatch
	methods resources.Methods // nil is any
	clients []*resources.SpiffeIDMatch
}

// size is the number of bytes of confs that its route is built from.
func (c *combination) size() (n int) {
	for _, chosen := range c.chosen {
		n += len(chosen.conf)
	}
	return n
}

// with adds a choice; possible is false if no request matches all. problem is the reason if the matching requests
// cannot be determined.
func (c combination) with(next *choice) (out combination, possible bool, problem string) {
	out = combination{
		chosen: append(slices.Clone(c.chosen), next), path: c.path, methods: c.methods, clients: slices.Clone(c.clients),
	}
	m := &next.match
	if m.SpiffeID != nil {
		out.clients = append(out.clients, m.SpiffeID)
	}
	if len(m.Method) > 0 {
		out.methods = slices.Clone(m.Method)
		if len(c.methods) > 0 {
			out.methods = slices.DeleteFunc(out.methods, func(method string) bool { return !slices.Contains(c.methods, method) })
			if len(out.methods) == 0 {
				return out, false, ""
			}
		}
	}
	if m.Path == nil {
		return out, true, ""
	}
	if c.path == nil {
		out.path = m.Path
		return out, true, ""
	}
	out.path, possible, problem = bothPaths(c.path, m.Path)
	return out, possible, problem
}

// bothPaths returns the match for the paths that two matches have in common.
func bothPaths(a, b *resources.PathMatch) (m *resources.PathMatch, possible bool, problem string) {
	if *a == *b {
		return a, true, ""
	}
	if b.Type == resources.MatchExact || a.Type == resources.MatchPrefix && b.Type == resources.MatchPrefix &&
		len(b.Value) > len(a.Value) {
		a, b = b, a // the narrower first
	}
	switch {
	case a.Type == resources.MatchExact:
		return a, pathMatches(b, a.Value), ""
	case a.Type == resources.MatchPrefix && b.Type == resources.MatchPrefix:
		return a, pathMatches(b, a.Value), ""
	}
	return nil, false, "a path by a regular expression cannot be combined with a path of another policy: this combination has no effect"
}

// pathMatches reports whether a match covers a path.
func pathMatches(m *resources.PathMatch, path string) bool {
	switch m.Type {
	case resources.MatchExact:
		return path == m.Value
	case resources.MatchRegularExpression:
		expression, err := regexp.Compile("^(?:" + m.Value + ")$")
		return err == nil && expression.MatchString(path)
	}
	prefix := strings.TrimRight(m.Value, "/")
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// routeMatch returns the combination as an Envoy match.
func (c *combination) routeMatch() *routev3.RouteMatch {
	out := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
	if c.path != nil {
		matchPath(out, &resources.RoutePathMatch{Type: c.path.Type, Value: c.path.Value})
	}
	if len(c.methods) > 0 {
		out.Headers = append(out.Headers,
			&routev3.HeaderMatcher{Name: ":method", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
				StringMatch: stringMatch(&resources.RouteValueMatch{Type: resources.MatchRegularExpression,
					Value: strings.Join(c.methods, "|")}),
			}})
	}
	for _, client := range c.clients {
		value := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: client.Value}}
		if client.Type == resources.MatchPrefix {
			value = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: client.Value}}
		}
		out.FilterState = append(out.FilterState, &matcherv3.FilterStateMatcher{
			Key: verifiedClient, Matcher: &matcherv3.FilterStateMatcher_StringMatch{StringMatch: value},
		})
	}
	return out
}
