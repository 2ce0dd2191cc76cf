package xds

import (
	"bytes"
	"math"
	"net/http"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// gatewayTable builds the routes of a gateway's listener. They are a resource of their own, so routes and policies
// replace no listener.
func (s *sender) gatewayTable(name string, hosts []*gatewayHost) (*resource, error) {
	table := &routev3.RouteConfiguration{
		Name: name, ValidateClusters: wrapperspb.Bool(false), IgnorePortInHostMatching: true,
	}
	for _, h := range hosts {
		host := &routev3.VirtualHost{Name: h.domain, Domains: []string{h.domain}}
		for _, r := range h.routes {
			host.Routes = append(host.Routes, s.routesOf(r)...)
		}
		if h.misdirected {
			host.Routes = []*routev3.Route{misdirected()}
		}
		s.target.observed.trace.onRoutes(host.Routes)
		table.VirtualHosts = append(table.VirtualHosts, host)
	}
	return newResource(kindRoute, name, table)
}

// misdirected tells the client not to use this connection for the host, so that it opens another.
func misdirected() *routev3.Route {
	return &routev3.Route{Name: "misdirected", Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: http.StatusMisdirectedRequest}}}
}

// routesOf returns the routes of a rule, which are the same under all hosts.
func (s *sender) routesOf(r *gatewayRoute) []*routev3.Route {
	if !r.written {
		r.routes, r.written = s.gatewayRoutes(r), true
	}
	return r.routes
}

// gatewayRoutes builds the routes of a rule: one, or one per part of its services with different confs. A proxy draws
// one random number per request, so each part begins where the previous one ends.
func (s *sender) gatewayRoutes(r *gatewayRoute) (out []*routev3.Route) {
	parts := s.partsOf(r)
	sum, all := uint64(0), total(r.shares)
	for i := range parts {
		part := *r
		part.shares = parts[i].shares
		route := s.gatewayRoute(&part, &parts[i])
		if sum += total(part.shares); i < len(parts)-1 {
			route.Match.RuntimeFraction = &corev3.RuntimeFractionalPercent{DefaultValue: millionths(sum, all)}
		}
		if err := route.Validate(); err != nil { // one bad rule must not keep the proxy from the rest
			s.problem(route.Name, "proxies refuse a rule, which is omitted: "+err.Error())
			return nil
		}
		out = append(out, route)
	}
	return out
}

// millionths returns a fraction in millionths.
func millionths(part, whole uint64) *typev3.FractionalPercent {
	const million = 1_000_000
	return &typev3.FractionalPercent{Numerator: uint32(math.Round(float64(part) / float64(whole) * million)),
		Denominator: typev3.FractionalPercent_MILLION}
}

// gatewayRoute builds the route to some services of a rule.
func (s *sender) gatewayRoute(r *gatewayRoute, confs *requestConfs) *routev3.Route {
	at := r.rule.Origin.KRI().String()
	route := &routev3.Route{Name: at, Match: routeMatch(&r.match)}
	main := r.main()
	if main == nil {
		main = &backend{}
	}
	limits := s.timeoutsOf(confs.timeouts)
	action := action(r.shares, lost, &limits)
	action.RetryPolicy = s.retryOf(confs.retries, main)
	action.HashPolicy = s.hashes(confs.balancing)
	rewriteHost(action, r.shares, &backend{})
	route.Action = &routev3.Route_Route{Route: action}
	redirects := slices.ContainsFunc(r.conf.Filters,
		func(f resources.HTTPRouteFilter) bool { return f.Type == "RequestRedirect" })
	if total(r.shares) == 0 {
		route.Action = &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{
			Status: http.StatusInternalServerError}}
		if len(r.shares) == 0 && !redirects {
			s.problem(at, "a rule has neither backendRefs nor a redirect, and is answered with 500")
		}
	}
	s.filters(route, action, &r.httpRoute)
	return route
}

// requestConfs holds the confs of a route, for some of its services.
type requestConfs struct {
	timeouts, retries, balancing *matching.ResourceRule
	grpc                         bool // retries have a conf for it
	shares                       []weighted
}

func (c *requestConfs) same(o *requestConfs) bool {
	return c.grpc == o.grpc && sameConf(c.timeouts, o.timeouts) && sameConf(c.retries, o.retries) &&
		sameConf(c.balancing, o.balancing)
}

// partsOf returns the services of a rule, grouped by their confs.
func (s *sender) partsOf(r *gatewayRoute) []requestConfs {
	if r.parts == nil {
		r.parts = s.parted(r)
	}
	return r.parts
}

// parted groups the services of a rule that have a share by their confs, in order. A share without a service belongs to
// the previous group. A rule without shares is one part. It stops once there are more parts than a table may have.
func (s *sender) parted(r *gatewayRoute) []requestConfs {
	var out []requestConfs
	for _, w := range r.shares {
		if w.weight == 0 {
			continue
		}
		confs := s.confsOf(r.rule, w.backend)
		same := slices.IndexFunc(out, func(o requestConfs) bool { return w.backend == nil || o.same(&confs) })
		if same < 0 {
			if len(out)*r.size() > maxRouteBytes {
				break
			}
			out, same = append(out, confs), len(out)
		}
		out[same].shares = append(out[same].shares, w)
	}
	if len(out) == 0 {
		confs := s.confsOf(r.rule, nil)
		confs.shares = r.shares
		return []requestConfs{confs}
	}
	return out
}

// confsOf returns the confs of a rule's requests to a service; nil means none.
func (s *sender) confsOf(rule *matching.RouteRule, b *backend) requestConfs {
	key, grpc := matching.MeshKey(s.target.match.Key.Mesh), false
	if b != nil {
		key, grpc = b.key(), b.protocol == "grpc"
	}
	return requestConfs{timeouts: s.timeouts.ForRoute(rule.Route, key), retries: s.retries.ForRoute(rule.Route, key),
		balancing: s.balancing.ForRoute(rule.Route, key), grpc: grpc}
}

func sameConf(a, b *matching.ResourceRule) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.Conf, b.Conf)
}
