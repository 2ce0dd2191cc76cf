package xds

import (
	"bytes"
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// gatewayTable builds the routes of a gateway's listener. They are a resource of their own, so that routes and policies
// move no listener.
func (s *sender) gatewayTable(name string, hosts []*gatewayHost) (*resource, error) {
	table := &routev3.RouteConfiguration{
		Name: name, ValidateClusters: wrapperspb.Bool(false), IgnorePortInHostMatching: true,
	}
	for _, h := range hosts {
		host := &routev3.VirtualHost{Name: h.domain, Domains: []string{h.domain}}
		for _, r := range h.routes {
			route := s.gatewayRoute(r)
			if err := route.Validate(); err != nil { // one bad rule must not keep the proxy from the rest
				s.problem(route.Name, "a proxy does not accept a rule, which is left out: "+err.Error())
				continue
			}
			host.Routes = append(host.Routes, route)
		}
		if h.misdirected {
			host.Routes = []*routev3.Route{misdirected()}
		}
		s.target.observed.trace.onRoutes(host.Routes)
		table.VirtualHosts = append(table.VirtualHosts, host)
	}
	return newResource(kindRoute, name, table)
}

// misdirected answers that the host is not to be asked for on this connection, so that a client makes one of its own.
func misdirected() *routev3.Route {
	return &routev3.Route{Name: "misdirected", Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: http.StatusMisdirectedRequest}}}
}

// gatewayRoute builds a route. Its requests have the timeouts, retries and hash policies of the first service that gets
// a share of them.
func (s *sender) gatewayRoute(r *gatewayRoute) *routev3.Route {
	at := r.rule.Origin.KRI().String()
	route := &routev3.Route{Name: at, Match: routeMatch(&r.match)}
	main := r.main()
	if main == nil {
		main = &backend{}
	}
	confs := s.confsOf(r, main)
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

// requestConfs are the confs that a route holds.
type requestConfs struct {
	timeouts, retries, balancing *matching.ResourceRule
}

// confsOf returns the confs of a route's requests, and tells of services that get a share and have others.
func (s *sender) confsOf(r *gatewayRoute, main *backend) requestConfs {
	of := func(b *backend) requestConfs {
		key := matching.MeshKey(s.target.dataplane.Mesh)
		if b.service != nil {
			key = b.key()
		}
		return requestConfs{s.timeouts.ForRoute(r.rule.Route, key), s.retries.ForRoute(r.rule.Route, key),
			s.balancing.ForRoute(r.rule.Route, key)}
	}
	confs := of(main)
	for _, w := range r.shares {
		if w.backend == nil || w.weight == 0 || w.backend == main {
			continue
		}
		if other := of(w.backend); !sameConf(confs.timeouts, other.timeouts) || !sameConf(confs.retries, other.retries) ||
			!sameConf(confs.balancing, other.balancing) {
			s.problem(r.rule.Origin.KRI().String(), "requests of one rule have the timeouts, retries and hash policies of one service: those of "+
				main.name+" and not of "+w.name)
		}
	}
	return confs
}

func sameConf(a, b *matching.ResourceRule) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.Conf, b.Conf)
}
