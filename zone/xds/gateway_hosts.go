package xds

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// gatewayRoutes are the routes of a gateway, in the order in which they are tried.
type gatewayRoutes struct {
	http []*gatewayRoute
	tcp  []*gatewayRoute
	// to holds the service ports that each route sends to.
	to map[matching.ResourceKey][]matching.ResourceKey
}

// gatewayRoute is a rule of a route for a gateway.
type gatewayRoute struct {
	httpRoute
	hosts []string
	// attached means that some listener accepts it.
	attached bool
	// parts holds its services grouped by their confs; nil before it is computed. Use partsOf.
	parts []requestConfs
	// routes are those of a table, the same under each of its hosts, once they are built. Use routesOf.
	routes  []*routev3.Route
	written bool
}

// main returns the first backend that gets a share; nil if none does.
func (r *gatewayRoute) main() *backend {
	for _, w := range r.shares {
		if w.weight > 0 && w.backend != nil {
			return w.backend
		}
	}
	return nil
}

// bytesOfEntry is the weight of an entry in a route table, besides its rule.
const bytesOfEntry = 64

func (r *gatewayRoute) size() int { return len(r.rule.Match) + len(r.rule.Conf) + bytesOfEntry }

// sizeOf returns the weight of a rule in a table: each of its parts is a route with the whole rule.
func (s *sender) sizeOf(r *gatewayRoute) int {
	if len(r.shares) < 2 {
		return r.size()
	}
	return len(s.partsOf(r)) * r.size()
}

// gatewayHost is a domain of a port, with the routes that apply to it.
type gatewayHost struct {
	domain string
	routes []*gatewayRoute
	// misdirected means that the domain belongs to another listener or to none. The handshake asked for another name,
	// as browsers do that reuse a connection for all names of its certificate.
	misdirected bool
}

// resolveGateway reads the routes for the gateway that the proxy serves, and finds the services that they send to.
func (s *sender) resolveGateway(p *plan, in matching.ToInput) error {
	g := s.target.gateway
	if g == nil {
		return nil
	}
	s.out.ofGateway = slices.Clone(g.problems)
	if g.resource == nil {
		return nil
	}
	defer s.keepOfGateway(len(s.out.problems))
	s.gateway.to = map[matching.ResourceKey][]matching.ResourceKey{}
	for t, into := range map[resources.Type]*[]*gatewayRoute{resources.TypeMeshHTTPRoute: &s.gateway.http,
		resources.TypeMeshTCPRoute: &s.gateway.tcp} {
		in.Type = t
		var err error
		if *into, err = s.gatewayRules(p, in); err != nil {
			return err
		}
		for _, r := range *into {
			for _, w := range r.shares {
				if w.backend != nil {
					s.gateway.to[r.rule.Route] = append(s.gateway.to[r.rule.Route], w.backend.key())
				}
			}
		}
	}
	return nil
}

// keepOfGateway moves the problems from the nth on to the gateway's problems.
func (s *sender) keepOfGateway(n int) {
	s.out.ofGateway = append(s.out.ofGateway, s.out.problems[n:]...)
	s.out.problems = s.out.problems[:n]
}

// gatewayRule is a rule of a route for a gateway, without the services that it sends to. It is immutable.
type gatewayRule struct {
	httpRoute
	hosts []string
	// problem is why it has no effect; empty if it has.
	problem string
}

// gatewayRules are rules in the order in which they are tried. Plans share them, so that a change of a MeshGateway reads no
// routes.
type gatewayRules struct{ all []gatewayRule }

// gatewayRulesKey is everything that they depend on: the routes of a type that select the gateway's proxy.
type gatewayRulesKey struct {
	typ    resources.Type
	routes string
}

func readGatewayRules(rules []matching.RouteRule) *gatewayRules {
	out := &gatewayRules{all: make([]gatewayRule, len(rules))}
	for i := range rules {
		r := &out.all[i]
		r.httpRoute, r.problem = readRule(&rules[i])
		r.hosts = []string{resources.AnyHost}
		if rules[i].Hostnames == nil {
			continue
		}
		if err := json.Unmarshal(rules[i].Hostnames, &r.hosts); err != nil {
			r.problem = "malformed hostnames: " + err.Error()
		}
		r.hosts = slices.DeleteFunc(r.hosts, func(h string) bool { return !resources.IsHostPattern(h) })
	}
	return out
}

// gatewayRules returns the rules of a type for the gateway, with the services that they send to.
func (s *sender) gatewayRules(p *plan, in matching.ToInput) (out []*gatewayRoute, err error) {
	key := gatewayRulesKey{in.Type, matching.Selected(in.Proxy, in.Policies, in.Type)}
	read, err := s.target.shared.gatewayRules.get(key, func() (*gatewayRules, error) {
		return readGatewayRules(matching.GatewayRoutes(in)), nil
	})
	if err != nil {
		return nil, err
	}
	p.gatewayRules = append(p.gatewayRules, read)
	size := 0
	for i := range read.all {
		rule := &read.all[i]
		at, r := rule.rule.Origin.KRI().String(), &gatewayRoute{httpRoute: rule.httpRoute, hosts: rule.hosts}
		if size += r.size(); size > maxRouteBytes {
			s.problem(at, fmt.Sprintf("the gateway's routes exceed %d bytes, with the whole rule for each match: this one and later ones are omitted", maxRouteBytes))
			break
		}
		if rule.problem != "" {
			s.problem(at, rule.problem)
			continue
		}
		s.resolveRule(&r.httpRoute, &backend{})
		out = append(out, r)
	}
	return out, nil
}

// hostsOf returns the domains that some listeners of a port serve, most specific first: their own hostnames, and those
// of their routes. A domain belongs to the most specific of all listeners of the port that cover it, and only that
// listener's routes apply to it, so a listener's hostname is exclusive. Among its routes, those with a more specific
// hostname come first.
func (s *sender) hostsOf(port *gatewayPort, own []*gatewayListener) []*gatewayHost {
	domains := map[string]bool{}
	for _, l := range own {
		domains[l.hostname] = true
		for _, other := range port.listeners {
			if resources.HostCovers(l.hostname, other.hostname) {
				domains[other.hostname] = true
			}
		}
		for _, r := range s.gateway.http {
			for _, h := range r.hosts {
				if d, ok := resources.NarrowerHost(l.hostname, h); ok && l.attaches(r.rule.ListenerTags()) {
					domains[d], r.attached = true, true
				}
			}
		}
	}
	var out []*gatewayHost
	size, byHost := 0, s.gateway.byHost()
	for _, domain := range slices.SortedFunc(maps.Keys(domains), resources.CompareHosts) {
		if size += len(domain) + bytesOfEntry; size > maxRouteBytes {
			// A less specific domain must not answer for one that is left out, and all of those come after it.
			s.problem(s.target.gateway.kri, fmt.Sprintf("the hostnames and routes of %s exceed %d bytes: %s and later ones get 404",
				port.name, maxRouteBytes, domain))
			return out
		}
		host := &gatewayHost{domain: domain}
		if owner := port.ownerOf(domain); slices.Contains(own, owner) {
			host.routes = routesOn(byHost, owner, domain)
		} else {
			host.misdirected = true
		}
		for i, r := range host.routes {
			if size += s.sizeOf(r); size > maxRouteBytes {
				s.problem(r.rule.Origin.KRI().String(), fmt.Sprintf("the routes of %s exceed %d bytes, with the whole rule for each match, hostname and part of its services with the same confs: this one and later ones are omitted from %s",
					port.name, maxRouteBytes, domain))
				host.routes = host.routes[:i]
				break
			}
		}
		out = append(out, host)
	}
	if own[0].tls() && !domains[resources.AnyHost] {
		out = append(out, &gatewayHost{domain: resources.AnyHost, misdirected: true})
	}
	return out
}

// ownerOf returns the most specific listener that covers a domain, or nil.
func (p *gatewayPort) ownerOf(domain string) (best *gatewayListener) {
	for _, l := range p.listeners {
		if resources.HostCovers(l.hostname, domain) &&
			(best == nil || resources.CompareHosts(l.hostname, best.hostname) < 0) {
			best = l
		}
	}
	return best
}

// byHost returns the routes of HTTP by their hostnames, in order.
func (g *gatewayRoutes) byHost() map[string][]*gatewayRoute {
	out := map[string][]*gatewayRoute{}
	for _, r := range g.http {
		for _, h := range r.hosts {
			out[h] = append(out[h], r)
		}
	}
	return out
}

// routesOn returns the routes that apply to a domain of a listener, more specific hostnames first. Of routes with the
// same match, the first counts.
func routesOn(byHost map[string][]*gatewayRoute, l *gatewayListener, domain string) []*gatewayRoute {
	var out []*gatewayRoute
	seen := map[string]bool{}
	for _, host := range hostsCovering(domain) {
		for _, r := range byHost[host] {
			if match := string(r.rule.Match); !seen[match] && l.attaches(r.rule.ListenerTags()) {
				seen[match] = true
				out = append(out, r)
			}
		}
	}
	return out
}

// hostsCovering returns all hostnames that cover a domain, the most specific first.
func hostsCovering(domain string) []string {
	out := []string{domain}
	if domain == resources.AnyHost {
		return out
	}
	_, parent, more := strings.Cut(strings.TrimPrefix(domain, "*."), ".")
	for more {
		out = append(out, "*."+parent)
		_, parent, more = strings.Cut(parent, ".")
	}
	return append(out, resources.AnyHost)
}

// connectionsOf returns the route for a listener's connections; nil if there is none.
func (s *sender) connectionsOf(l *gatewayListener) *gatewayRoute {
	for _, r := range s.gateway.tcp {
		if l.attaches(r.rule.ListenerTags()) {
			r.attached = true
			return r
		}
	}
	return nil
}

// unattached reports routes that no listener accepts.
func (s *sender) unattached() {
	for _, r := range s.gateway.http {
		if !r.attached {
			s.problem(r.rule.Origin.KRI().String(), "no HTTP or HTTPS listener accepts a rule of it: compare its hostnames and the tags of targetRef with those of "+s.target.gateway.kri)
		}
	}
	for _, r := range s.gateway.tcp {
		if !r.attached {
			s.problem(r.rule.Origin.KRI().String(), "no TCP or TLS listener accepts it, or another route takes precedence: compare the tags of targetRef with those of "+s.target.gateway.kri)
		}
	}
}
