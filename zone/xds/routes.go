package xds

import (
	"encoding/json"
	"fmt"
	"math/bits"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// maxRouteBytes limits the routes to one service, and those of one inbound, in bytes of their rules. Each match is a
// route with its whole rule, so a small policy can make a large table, held by the zone and, for a service, by the
// proxies of all its clients.
const maxRouteBytes = 2 << 20

const (
	// maxOwnerRouteBytes limits the rules by which one owner of a namespace, or one other zone, configures a proxy, counted as
	// for maxRouteBytes, and again for each service, and for each address on which the proxy listens for it: one route may be for
	// a thousand services.
	maxOwnerRouteBytes = 16 << 20
	// maxTableBytes limits the routes to one service as the proxy has them, each with what other policies say of it.
	maxTableBytes = 16 << 20
)

// httpRoute is a decoded rule of a MeshHTTPRoute.
type httpRoute struct {
	rule   *matching.RouteRule
	match  resources.HTTPRouteMatch
	conf   resources.HTTPRouteConf
	shares []weighted
	mirror map[int]*backend // by the filter's index
}

// httpRoutes returns the rules for a service, in the order in which they are tried.
func (s *sender) httpRoutes(b *backend) []httpRoute {
	var out []httpRoute
	rules := s.http.For(b.key())
	size := 0
	full := map[resources.Owner]bool{} // its less specific rules would take what a rule that is omitted is for
	for i := range rules {
		owner := s.payerOf(&rules[i])
		if full[owner] {
			continue // the rules of others do not depend on that
		}
		this := len(rules[i].Match) + len(rules[i].Conf)
		if !s.spends(&rules[i], owner, this) {
			full[owner] = true
			continue
		}
		at := rules[i].Origin.KRI().String()
		if size += this; size > maxRouteBytes {
			s.problem(at, fmt.Sprintf(
				"the routes to one service exceed %d bytes: this one and later ones are omitted",
				maxRouteBytes))
			break
		}
		r, ok := s.httpRoute(&rules[i], b)
		if !ok {
			continue
		}
		out = append(out, r)
	}
	return out
}

// payerOf returns the owner whose rule it is: a namespace of this zone, or all of another zone, which decides whose it is. It is
// zero for operators, who have no limit.
func (s *sender) payerOf(rule *matching.RouteRule) resources.Owner {
	owner := rule.Origin.Policy.Owner()
	switch {
	case owner.IsGlobal():
		return resources.Owner{}
	case owner.Zone != s.target.match.Zone:
		return resources.Owner{Zone: owner.Zone}
	case owner.IsOperator():
		return resources.Owner{}
	}
	return owner
}

// spends counts the bytes of a rule against what its owner may have in this proxy, and reports whether that is enough.
func (s *sender) spends(rule *matching.RouteRule, owner resources.Owner, size int) bool {
	if owner == (resources.Owner{}) {
		return true
	}
	if s.spent[owner]+size > maxOwnerRouteBytes {
		s.problem(rule.Origin.KRI().String(), fmt.Sprintf("the routes of one namespace, or of one other zone, exceed %d bytes for all services together: "+
			"those to further services are omitted", maxOwnerRouteBytes))
		return false
	}
	if s.spent == nil {
		s.spent = map[resources.Owner]int{}
	}
	s.spent[owner] += size
	return true
}

// httpRoute decodes a rule for traffic to b, and resolves its backends; ok is false if it does not decode.
func (s *sender) httpRoute(rule *matching.RouteRule, b *backend) (r httpRoute, ok bool) {
	r, problem := readRule(rule)
	if problem != "" {
		s.problem(rule.Origin.KRI().String(), problem)
		return r, false
	}
	s.resolveRule(&r, b)
	return r, true
}

// readRule decodes a rule. problem is why it does not decode; empty if it does.
func readRule(rule *matching.RouteRule) (r httpRoute, problem string) {
	r.rule = rule
	if rule.Match != nil {
		if err := json.Unmarshal(rule.Match, &r.match); err != nil {
			return r, "a match does not have the form of one: " + err.Error()
		}
	}
	if err := json.Unmarshal(rule.Conf, &r.conf); err != nil {
		return r, "a rule does not have the form of one: " + err.Error()
	}
	return r, ""
}

// resolveRule resolves the backends of a rule for traffic to b.
func (s *sender) resolveRule(r *httpRoute, b *backend) {
	r.shares = s.shares(r.rule, r.conf.BackendRefs, b)
	s.mirrors(r, b)
}

// tcpRoutes returns the shares of a service's connections; nil without a route.
func (s *sender) tcpRoutes(b *backend) []weighted {
	rules := s.tcp.For(b.key())
	if len(rules) == 0 || !s.spends(&rules[0], s.payerOf(&rules[0]), len(rules[0].Conf)) {
		return nil
	}
	var conf resources.TCPRouteConf
	if err := json.Unmarshal(rules[0].Conf, &conf); err != nil {
		s.problem(rules[0].Origin.KRI().String(), "a rule does not have the form of one: "+err.Error())
		return nil
	}
	return s.shares(&rules[0], conf.BackendRefs, b)
}

// routes builds the table of an HTTP outbound: the MeshHTTPRoutes, and the service itself for all other requests.
func (s *sender) routes(d *destined) (*resource, error) {
	host := &routev3.VirtualHost{Name: d.name, Domains: []string{"*"}}
	size := 0
	for i := range d.httpRoutes {
		r := &d.httpRoutes[i]
		route := &routev3.Route{Name: r.rule.Origin.KRI().String(), Match: routeMatch(&r.match)}
		limits := s.timeoutsOf(s.timeouts.ForRoute(r.rule.Route, d.key()))
		action := action(r.shares, d.backend.name, &limits)
		action.RetryPolicy = s.retryOf(s.retries.ForRoute(r.rule.Route, d.key()), d.backend)
		action.HashPolicy = s.hashes(s.balancing.ForRoute(r.rule.Route, d.key()))
		rewriteHost(action, r.shares, d.backend)
		route.Action = &routev3.Route_Route{Route: action}
		if len(r.shares) > 0 && total(r.shares) == 0 {
			route.Action = &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 500}}
		}
		s.filters(route, action, r)
		if err := route.Validate(); err != nil { // one bad rule must not keep the proxy from the rest
			s.problem(route.Name, "proxies refuse a rule, which is omitted: "+err.Error())
			continue
		}
		if size += proto.Size(route); size > maxTableBytes {
			s.problem(route.Name, fmt.Sprintf("the routes to one service take more than %d bytes of the proxy, with what other policies say of each: "+
				"this one and later ones are omitted", maxTableBytes))
			break
		}
		host.Routes = append(host.Routes, route)
	}
	limits := s.timeoutsOf(s.timeouts.For(d.key()))
	rest := action(nil, d.backend.name, &limits)
	rest.RetryPolicy = s.retryOf(s.retries.For(d.key()), d.backend)
	rest.HashPolicy = s.hashes(s.balancing.For(d.key()))
	rewriteHost(rest, nil, d.backend)
	host.Routes = append(host.Routes, &routev3.Route{
		Name: d.backend.name, Match: routeMatch(&resources.HTTPRouteMatch{}), Action: &routev3.Route_Route{Route: rest},
	})
	s.target.gatewayTrace().onRoutes(host.Routes)
	return newResource(kindRoute, d.name, &routev3.RouteConfiguration{
		Name: d.name, ValidateClusters: wrapperspb.Bool(false), VirtualHosts: []*routev3.VirtualHost{host},
	})
}

func total(shares []weighted) (sum uint64) {
	for _, w := range shares {
		sum += uint64(w.weight)
	}
	return sum
}

// tooHeavy returns by how many bits to reduce each share so that Envoy accepts their sum.
func tooHeavy(shares []weighted) int {
	return bits.Len64((total(shares) + uint64(len(shares))) >> 32)
}

// action sends requests to the shares, or to the service if there are none.
func action(shares []weighted, service string, limits *timeouts) *routev3.RouteAction {
	out := &routev3.RouteAction{Timeout: durationpb.New(limits.request), IdleTimeout: durationpb.New(limits.streamIdle)}
	if limits.maxStream != nil {
		out.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: durationpb.New(*limits.maxStream)}
	}
	clusters := &routev3.WeightedCluster{}
	for _, w := range shares {
		if w.weight > 0 {
			weight := max(w.weight>>tooHeavy(shares), 1)
			clusters.Clusters = append(clusters.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: w.name,
				Weight: wrapperspb.UInt32(weight)})
		}
	}
	switch len(clusters.Clusters) {
	case 0:
		out.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: service}
	case 1:
		out.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: clusters.Clusters[0].Name}
	default:
		out.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: clusters}
	}
	return out
}
