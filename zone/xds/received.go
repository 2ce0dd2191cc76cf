package xds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// receivedType is a policy type for inbound HTTP traffic. It affects only an inbound's routes, so no listener is
// replaced.
type receivedType struct {
	resources.Type
	// apply adds a merged conf, never empty, to the route of the requests that it matches. If it fails, the route is
	// unchanged.
	apply func(conf json.RawMessage, route *routev3.Route) error
}

// receivedTypes lists all of them. To add a type, add a row here, its conf to the types that package resources checks,
// and its fields to those that it calls enforced.
var receivedTypes = []receivedType{
	{resources.TypeMeshTimeout, applyTimeout},
	{resources.TypeMeshFaultInjection, applyFault},
	{resources.TypeMeshRateLimit, applyRateLimit},
}

// maxReceivedRoutes limits the routes of one inbound: each combination of one rule per type has one.
const maxReceivedRoutes = 1024

// choice is one rule of one type: a match and its conf. The last choice of a type matches all requests.
type choice struct {
	typ    *receivedType
	match  resources.PermissionMatch
	conf   json.RawMessage
	origin string
}

// received holds the routes of an HTTP inbound that policies produce. problems are the parts without effect.
type received struct {
	routes   []*routev3.Route
	problems []string
}

// receive builds the routes for an inbound's requests. The first rule of each type that matches applies. Combinations
// are tried in the order of the types' rules, so that the first matching route has the first matching rule of each
// type.
func receive(t *target, in *inbound, policies []*matching.Policy) received {
	var out received
	combinations := []combination{{}}
	for i := range receivedTypes {
		choices := out.choices(&receivedTypes[i], matching.InboundConfs(matching.InboundInput{
			Type: receivedTypes[i].Type, Proxy: t.match, Inbound: in.port, Policies: policies,
		}))
		if len(choices) == 0 {
			continue
		}
		var next []combination
		size := 0
		for _, c := range combinations {
			for i := range choices {
				joined, possible, problem := c.with(&choices[i])
				if problem != "" {
					out.problem(in, choices[i].origin, problem)
				} else if size += joined.size(); possible && size <= maxRouteBytes {
					next = append(next, joined)
				}
			}
		}
		if size > maxRouteBytes {
			out.problem(in, string(receivedTypes[i].Type), fmt.Sprintf("its rules and those of other types produce routes of more than %d bytes, so none of them takes effect", maxRouteBytes))
			continue
		}
		if len(next) > maxReceivedRoutes {
			out.problem(in, string(receivedTypes[i].Type), fmt.Sprintf("its rules and those of other types produce more than %d combinations, so none of them takes effect", maxReceivedRoutes))
			continue
		}
		combinations = next
	}
	for i := range combinations {
		if route := out.route(in, &combinations[i]); route != nil {
			out.routes = append(out.routes, route)
		}
	}
	return out
}

// choices reads the rules of a type, up to the first that matches all requests.
func (r *received) choices(typ *receivedType, rules matching.InboundRules) []choice {
	var out []choice
	for i := range rules.Items {
		rule := &rules.Items[i]
		c := choice{typ: typ, conf: rule.Conf, origin: rule.Origins[len(rule.Origins)-1].KRI().String()}
		if rule.Match == nil {
			return append(out, c)
		}
		// Other fields of a peer's match restrict it: without them it would match more.
		dec := json.NewDecoder(bytes.NewReader(rule.Match))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&c.match); err != nil || c.match.SNI != nil {
			r.problems = append(r.problems, c.origin+": the route of a request cannot express a match, which is left out")
			continue
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil
	}
	return append(out, choice{typ: typ})
}

func (r *received) problem(in *inbound, origin, text string) {
	if text = fmt.Sprintf("inbound %q: %s: %s", in.section, origin, text); !slices.Contains(r.problems, text) {
		r.problems = append(r.problems, text)
	}
}

// route builds the route of a combination, with everything that its rules configure. If Envoy does not accept a route,
// it refuses the others too. route is therefore nil if the match is the reason, and has no confs if they are.
func (r *received) route(in *inbound, c *combination) *routev3.Route {
	bare := func() *routev3.Route {
		return &routev3.Route{
			Name:  in.name(),
			Match: c.routeMatch(),
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: in.cluster()},
				Timeout:          durationpb.New(0),
			}},
		}
	}
	route := bare()
	for _, chosen := range c.chosen {
		if len(chosen.conf) == 0 {
			continue
		}
		if err := chosen.typ.apply(chosen.conf, route); err != nil {
			r.problem(in, chosen.origin, err.Error())
		}
	}
	err := route.Validate()
	if err == nil {
		return route
	}
	for _, chosen := range c.chosen {
		if chosen.origin != "" {
			r.problem(in, chosen.origin, "proxies refuse a rule, which is omitted: "+err.Error())
		}
	}
	if route = bare(); route.Validate() != nil {
		return nil
	}
	return route
}

// newInboundRoutes routes everything to the inbound's cluster, without time limits except those of policies, and
// answers requests with an unregistered method itself. It removes headers by which a client claims an identity.
func newInboundRoutes(in *inbound, routes []*routev3.Route) (*resource, error) {
	same, err := theUnvarying()
	if err != nil {
		return nil, err
	}
	refused, err := unregistered(in)
	if err != nil {
		return nil, err
	}
	return newResource(kindRoute, in.name(), &routev3.RouteConfiguration{
		Name:                   in.name(),
		ValidateClusters:       wrapperspb.Bool(false),
		RequestHeadersToRemove: same.identityHeaders,
		VirtualHosts: []*routev3.VirtualHost{{
			Name:    in.name(),
			Domains: []string{"*"},
			Routes:  append([]*routev3.Route{refused}, routes...),
		}},
	})
}

// inboundRoutes are the routes of an HTTP inbound. problems are the parts of policies without effect. It is immutable.
type inboundRoutes struct {
	*resource
	problems []string
}

// inboundRoutesKey is everything that they depend on.
type inboundRoutesKey struct {
	policies, section string
	permissive        bool
}

// receivedPolicies are the types of receivedTypes.
var receivedPolicies = func() (out []resources.Type) {
	for i := range receivedTypes {
		out = append(out, receivedTypes[i].Type)
	}
	return out
}()

// inboundRoutes returns the routes of an HTTP inbound.
func (t *target) inboundRoutes(in *inbound, policies []*matching.Policy) (*inboundRoutes, error) {
	key := inboundRoutesKey{section: in.section, permissive: in.permissive,
		policies: matching.SelectedInbound(t.match, in.port, policies, receivedPolicies...)}
	return t.shared.inboundRoutes.get(key, func() (*inboundRoutes, error) {
		received := receive(t, in, policies)
		routes, err := newInboundRoutes(in, received.routes)
		return &inboundRoutes{routes, received.problems}, err
	})
}

// buildRoutes builds the routes of HTTP inbounds.
func (s *state) buildRoutes(t *target, policies []*matching.Policy, old *state) error {
	var out []*resource
	s.unrouted, s.madeRoutes = nil, nil
	for i := range t.inbounds {
		in := &t.inbounds[i]
		if !in.http() {
			continue
		}
		routes, err := t.inboundRoutes(in, policies)
		if err != nil {
			return fmt.Errorf("inbound %q: %w", in.section, err)
		}
		s.madeRoutes = append(s.madeRoutes, routes)
		s.unrouted = append(s.unrouted, routes.problems...)
		traced, err := t.traced(routes.resource, 1) // the first one answers requests that no trace should have
		if err != nil {
			return fmt.Errorf("inbound %q: %w", in.section, err)
		}
		out = append(out, traced)
	}
	s.receiving[kindRoute] = newSet(append(out, t.observed.routes...)...)
	if old != nil {
		s.receiving[kindRoute] = s.receiving[kindRoute].keepOf(old.sets[kindRoute])
	}
	return nil
}

// isReceived reports whether policies of a type are among receivedTypes.
func isReceived(t resources.Type) bool {
	return slices.ContainsFunc(receivedTypes, func(r receivedType) bool { return r.Type == t })
}

// routed reports whether one of the policies may shape routes of inbounds.
func routed(policies []*matching.Policy) bool {
	return slices.ContainsFunc(policies, func(p *matching.Policy) bool { return isReceived(p.Resource.Type) })
}
