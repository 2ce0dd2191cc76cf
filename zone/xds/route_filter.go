package xds

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
)

// Confs of a MeshHTTPRoute's filters, except resources.RouteHeaders and resources.RouteMirror. Source: Kuma's wire
// format.
type (
	redirectFilter struct {
		Scheme     string       `json:"scheme"`
		Hostname   string       `json:"hostname"`
		Path       *pathRewrite `json:"path"`
		Port       uint32       `json:"port"`
		StatusCode int          `json:"statusCode"`
	}
	rewriteFilter struct {
		Hostname              string       `json:"hostname"`
		Path                  *pathRewrite `json:"path"`
		HostToBackendHostname bool         `json:"hostToBackendHostname"`
	}
	pathRewrite struct {
		Type               string  `json:"type"`
		ReplaceFullPath    *string `json:"replaceFullPath"`
		ReplacePrefixMatch *string `json:"replacePrefixMatch"`
	}
)

// mirrors resolves the mirror targets of a rule's requests.
func (s *sender) mirrors(r *httpRoute, b *backend) {
	for i := range r.conf.Filters {
		f := &r.conf.Filters[i]
		if f.Type != "RequestMirror" {
			continue
		}
		conf := filterConf[resources.RouteMirror](s, r, f.RequestMirror)
		if conf.BackendRef == nil {
			continue // only a peer can send this
		}
		if shares := s.shares(r.rule, []resources.BackendRef{*conf.BackendRef}, b); shares[0].backend != nil {
			if len(r.mirror) == resources.MostMirrors {
				s.problem(r.rule.Origin.KRI().String(), fmt.Sprintf("a rule has more than %d mirrors: the others are left out", resources.MostMirrors))
				return
			}
			if r.mirror == nil {
				r.mirror = map[int]*backend{}
			}
			r.mirror[i] = shares[0].backend
		}
	}
}

// filters adds a rule's changes to requests and responses.
func (s *sender) filters(route *routev3.Route, action *routev3.RouteAction, r *httpRoute) {
	for i := range r.conf.Filters {
		f := &r.conf.Filters[i]
		switch f.Type {
		case "RequestHeaderModifier":
			conf := filterConf[resources.RouteHeaders](s, r, f.RequestHeaderModifier)
			s.usable(&conf, route.Name)
			route.RequestHeadersToAdd = append(route.RequestHeadersToAdd, routeHeaderOptions(&conf)...)
			route.RequestHeadersToRemove = append(route.RequestHeadersToRemove, conf.Remove...)
		case "ResponseHeaderModifier":
			conf := filterConf[resources.RouteHeaders](s, r, f.ResponseHeaderModifier)
			s.usable(&conf, route.Name)
			route.ResponseHeadersToAdd = append(route.ResponseHeadersToAdd, routeHeaderOptions(&conf)...)
			route.ResponseHeadersToRemove = append(route.ResponseHeadersToRemove, conf.Remove...)
		case "RequestRedirect":
			conf := filterConf[redirectFilter](s, r, f.RequestRedirect)
			route.Action = &routev3.Route_Redirect{Redirect: conf.envoy(prefixOf(r))}
		case "URLRewrite":
			conf := filterConf[rewriteFilter](s, r, f.URLRewrite)
			conf.apply(action, prefixOf(r))
		case "RequestMirror":
			conf := filterConf[resources.RouteMirror](s, r, f.RequestMirror)
			if to := r.mirror[i]; to != nil {
				action.RequestMirrorPolicies = append(action.RequestMirrorPolicies, mirrorPolicy(&conf, to))
			}
		}
	}
}

// usable drops headers that routes may not change: Envoy would refuse all routes.
func (s *sender) usable(f *resources.RouteHeaders, origin string) {
	refused := func(name string) bool {
		own := name == "" || strings.HasPrefix(name, ":") || strings.EqualFold(name, "host")
		if own {
			s.problem(origin, fmt.Sprintf("a route cannot change the header %.64q, which stays as it is", name))
		}
		return own
	}
	ofValue := func(v resources.HeaderValue) bool { return refused(v.Name) }
	f.Set, f.Add, f.Remove = slices.DeleteFunc(f.Set, ofValue), slices.DeleteFunc(f.Add, ofValue),
		slices.DeleteFunc(f.Remove, refused)
}

func filterConf[T any](s *sender, r *httpRoute, raw json.RawMessage) (conf T) {
	if err := json.Unmarshal(raw, &conf); err != nil {
		s.problem(r.rule.Origin.KRI().String(), "a filter does not match its type: "+err.Error())
		var none T
		return none
	}
	return conf
}

// prefixOf returns the path prefix that a rule matches, without a trailing slash.
func prefixOf(r *httpRoute) string {
	if r.match.Path == nil || r.match.Path.Type != "PathPrefix" {
		return ""
	}
	return strings.TrimRight(r.match.Path.Value, "/")
}

// routeHeaderOptions returns the headers that a filter sets and adds.
func routeHeaderOptions(f *resources.RouteHeaders) []*corev3.HeaderValueOption {
	var out []*corev3.HeaderValueOption
	add := func(values []resources.HeaderValue, how corev3.HeaderValueOption_HeaderAppendAction) {
		for _, v := range values {
			out = append(out, &corev3.HeaderValueOption{
				// Envoy reads % as the start of a variable.
				Header:       &corev3.HeaderValue{Key: v.Name, Value: strings.ReplaceAll(v.Value, "%", "%%")},
				AppendAction: how,
			})
		}
	}
	add(f.Set, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)
	add(f.Add, corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD)
	return out
}

var redirectCodes = map[int]routev3.RedirectAction_RedirectResponseCode{
	301: routev3.RedirectAction_MOVED_PERMANENTLY, 302: routev3.RedirectAction_FOUND,
	303: routev3.RedirectAction_SEE_OTHER,
	307: routev3.RedirectAction_TEMPORARY_REDIRECT, 308: routev3.RedirectAction_PERMANENT_REDIRECT,
}

func (f *redirectFilter) envoy(prefix string) *routev3.RedirectAction {
	out := &routev3.RedirectAction{HostRedirect: f.Hostname, PortRedirect: f.Port,
		ResponseCode: routev3.RedirectAction_FOUND}
	if code, ok := redirectCodes[f.StatusCode]; ok {
		out.ResponseCode = code
	}
	if f.Scheme != "" {
		out.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: f.Scheme}
	}
	switch p := f.Path; {
	case p == nil:
	case p.ReplaceFullPath != nil:
		out.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: *p.ReplaceFullPath}
	case p.ReplacePrefixMatch != nil:
		out.PathRewriteSpecifier = &routev3.RedirectAction_RegexRewrite{RegexRewrite: replacePrefix(prefix,
			*p.ReplacePrefixMatch)}
	}
	return out
}

func (f *rewriteFilter) apply(action *routev3.RouteAction, prefix string) {
	switch {
	case f.HostToBackendHostname:
		action.HostRewriteSpecifier = &routev3.RouteAction_AutoHostRewrite{AutoHostRewrite: wrapperspb.Bool(true)}
	case f.Hostname != "":
		action.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: f.Hostname}
	}
	switch p := f.Path; {
	case p == nil:
	case p.ReplaceFullPath != nil:
		action.RegexRewrite = rewrite(".*", *p.ReplaceFullPath)
	case p.ReplacePrefixMatch != nil:
		action.RegexRewrite = replacePrefix(prefix, *p.ReplacePrefixMatch)
	}
}

// replacePrefix replaces whole segments: /v2 by / makes /foo of /v2/foo, and / of /v2.
func replacePrefix(prefix, by string) *matcherv3.RegexMatchAndSubstitute {
	by = strings.TrimRight(by, "/")
	if prefix == "" || by == "" {
		return rewrite("^"+regexp.QuoteMeta(prefix)+"/?", by+"/")
	}
	return rewrite("^"+regexp.QuoteMeta(prefix), by)
}

func rewrite(pattern, by string) *matcherv3.RegexMatchAndSubstitute {
	return &matcherv3.RegexMatchAndSubstitute{
		Pattern: sized(pattern, 2*len(pattern)), Substitution: strings.ReplaceAll(by, `\`, `\\`),
	}
}

func mirrorPolicy(f *resources.RouteMirror, to *backend) *routev3.RouteAction_RequestMirrorPolicy {
	share := 100.0
	if n, ok := percentOf(f.Percentage); ok {
		share = min(n, 100)
	}
	return &routev3.RouteAction_RequestMirrorPolicy{
		Cluster: to.name,
		RuntimeFraction: &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{
			Numerator: uint32(share * 10000), Denominator: typev3.FractionalPercent_MILLION,
		}},
	}
}
