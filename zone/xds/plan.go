package xds

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/hostnames"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// plan is what proxies with the same outbounds, gateway and policies share of their outgoing configuration: everything
// except their own identities in clusters, their addresses in a gateway's listeners, the listeners of an egress, and logs
// and traces in other listeners. It is immutable.
type plan struct {
	// out holds the rest: routes, and clusters of services outside the mesh.
	out sending
	// found holds the outbounds, clusters the parts of the clusters to services of the mesh.
	found    []*destined
	clusters []*clusterPart
	// configs holds what those are built from, which other plans share.
	configs []*clusterConfig
	// plain holds the routes of outbounds without a MeshHTTPRoute, which other plans share.
	plain []*plainRoutes
	// external holds the clusters of services outside the mesh, which other plans share.
	external []*externalCluster
	// doors holds what the listeners of an egress lead to.
	doors []door
	// gateway holds the parts of a gateway's listeners, and gatewayRules the rules of its routes, which other plans share.
	gateway      []*gatewayPart
	gatewayRules []*gatewayRules
	// needed holds the backends whose endpoints the proxy requests.
	needed []*backend
	// table holds the address of each name that the proxy answers for, and tableText is the same as text.
	table     map[string]netip.Addr
	tableText string
	// files are the files that health checks write.
	files []string
	// rules are those of its policies, which other plans share.
	rules []*matching.ToRules
	// logs holds the rules for outbound logs, if they were built with the plan.
	logs *matching.ToRules
	// private means that the plan depends on something of the proxy itself, so that it is not shared.
	private bool
}

// planTypes are the policies that a plan depends on.
var planTypes = []resources.Type{
	resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute, resources.TypeMeshTimeout, resources.TypeMeshRetry,
	resources.TypeMeshCircuitBreaker, resources.TypeMeshLoadBalancingStrategy, resources.TypeMeshHealthCheck,
}

// planKey is everything that a plan depends on, unless it is private.
type planKey struct {
	policies, outbounds   string
	tagged                string
	mesh, zone, namespace string
	dests                 *matching.Destinations
	names                 *hostnames.Names
	redirected, answers   bool
	asked, byEgress, gone bool
	egress                bool
	trace                 *traceConf // of a gateway
	gateway               gatewayKey
}

// outboundsText identifies the parts of a Dataplane that a plan depends on.
func (t *target) outboundsText() (string, error) {
	type one struct {
		Listen, Field string
		Ref           resources.BackendRef
		Tags          map[string]string
	}
	var all []one
	for _, o := range t.outbounds {
		all = append(all, one{o.listen.String(), o.field, o.ref, o.tags})
	}
	text, err := json.Marshal([]any{all, t.unserved, t.reachable.limited, t.reachable.refs})
	return string(text), err
}

// plan returns the plan of the proxy.
func (s *sender) plan() (*plan, error) {
	t := s.target
	gateway := s.gatewayKey()
	s.from = gateway.from
	key := planKey{
		gateway:   gateway,
		policies:  matching.Selected(t.match, s.policies, planTypes...),
		outbounds: t.outboundsID, tagged: taggedText(s.tagged), mesh: t.match.Key.Mesh, zone: t.match.Zone, namespace: t.match.Namespace,
		dests: s.dests, names: s.names, redirected: t.capture.port != 0,
		answers: t.answersNames(), asked: s.asked, byEgress: s.byEgress, gone: s.gone, egress: s.egress,
	}
	if trace := t.gatewayTrace(); trace != nil {
		key.trace = trace.conf
	}
	p, err := t.shared.plans.get(key, func() (*plan, error) { return s.common(&gateway).makePlan() })
	if err != nil || !p.private {
		return p, err
	}
	return s.makePlan()
}

// common returns a sender with the content of planKey, and nothing else of the proxy.
func (s *sender) common(gateway *gatewayKey) *sender {
	t := s.target
	return &sender{
		target: &target{match: t.match, outbounds: t.outbounds, unserved: t.unserved, reachable: t.reachable, dns: t.dns,
			capture: capture{port: min(t.capture.port, 1)}, shared: t.shared, logFiles: &logFiles{},
			observed: observed{trace: t.gatewayTrace()}, proxyless: t.proxyless, gateway: t.gateway,
			measured: measured{adminPort: gateway.admin}},
		from:  s.from,
		dests: s.dests, policies: s.policies, sources: s.sources, own: s.own, names: s.names, byEgress: s.byEgress,
		gone: s.gone, egress: s.egress, asked: s.asked, tagged: s.tagged, sharing: true,
	}
}

// makePlan builds a plan.
func (s *sender) makePlan() (*plan, error) {
	s.listens, s.backends = map[string]bool{}, map[string]*backend{}
	s.out.problems = slices.Clone(s.target.unserved)
	input := matching.ToInput{Proxy: s.target.match, Policies: s.policies, Destinations: s.dests,
		Tagged: taggedRules(s.tagged)}
	input.Type = resources.TypeMeshHTTPRoute
	s.http = matching.NewRouteTable(input)
	input.Type = resources.TypeMeshTCPRoute
	s.tcp = matching.NewRouteTable(input)

	p := &plan{found: append(s.resolve(), s.resolveNamed()...)}
	p.doors = s.resolveEgress()
	if err := s.resolveGateway(p, input); err != nil {
		return nil, err
	}
	input.Gateway = s.gateway.to
	input.Only = map[matching.ResourceKey]bool{}
	for _, b := range s.backends {
		input.Only[b.service.Key()] = true
	}
	only, routes := keysText(input.Only), routesText(input.Gateway)
	for t, rules := range map[resources.Type]*matching.ToRules{
		resources.TypeMeshTimeout: &s.timeouts, resources.TypeMeshRetry: &s.retries,
		resources.TypeMeshCircuitBreaker:        &s.breakers,
		resources.TypeMeshLoadBalancingStrategy: &s.balancing, resources.TypeMeshHealthCheck: &s.health,
	} {
		input.Type = t
		made, err := s.toRules(input, only, routes)
		if err != nil {
			return nil, err
		}
		*rules, p.rules = *made, append(p.rules, made)
	}
	if s.target.gateway != nil {
		input.Type = resources.TypeMeshAccessLog
		made, err := s.toRules(input, only, routes)
		if err != nil {
			return nil, err
		}
		s.logs, p.logs = *made, made
	}
	if err := s.make(p); err != nil {
		return nil, err
	}
	for k := range s.out.sets {
		s.out.sets[k] = newSet(s.out.sets[k]...)
	}
	for _, b := range s.backends {
		if b.external == nil || b.egress { // otherwise its cluster contains everything
			p.needed = append(p.needed, b)
		}
	}
	slices.SortFunc(p.needed, func(a, b *backend) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(p.clusters, func(a, b *clusterPart) int { return strings.Compare(a.name, b.name) })
	s.out.problems, s.out.ofGateway = sorted(s.out.problems), sorted(s.out.ofGateway) // clusters say the same of one policy
	s.out.follows = s.out.followsOf()
	p.out, p.private, p.files = s.out, s.private, s.target.logFiles.paths()
	if s.out.named {
		p.table, p.tableText = s.table, tableText(s.table)
	}
	return p, nil
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// make builds routes and clusters, and the parts of a gateway's listeners.
func (s *sender) make(p *plan) error {
	for _, d := range p.found {
		s.prepare(d)
		if !d.http() {
			continue
		}
		route, err := s.tableOf(p, d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.field, err)
		}
		s.out.sets[kindRoute] = append(s.out.sets[kindRoute], route)
	}
	if err := s.makeGateway(p); err != nil {
		return err
	}
	for _, b := range s.backends {
		if err := s.makeCluster(p, b); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

func (s *sender) makeCluster(p *plan, b *backend) error {
	switch {
	case b.egress && s.gone:
		s.problem(b.name, "it is unreachable: the mesh requires an egress (routing.zoneEgress), and this zone has none")
	case b.egress:
	case b.external != nil:
		cluster, err := s.external(b)
		if err != nil {
			return err
		}
		p.external = append(p.external, cluster)
		s.out.sets[kindCluster] = append(s.out.sets[kindCluster], cluster.resource)
		return nil
	default:
		b.prefer = s.prefers(b)
	}
	part, err := s.cluster(p, b)
	p.clusters = append(p.clusters, part)
	return err
}
