package matching

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// HeaderMatch is a condition on a request: the header is present and its whole value matches the RE2 expression.
type HeaderMatch struct {
	Name, Expression string
}

// maxAllows limits what one TrafficTarget allows: each source for each match of each rule. Small documents, multiplied, would
// take all memory.
const maxAllows = 20_000

// trafficRule is a rule of a TrafficTarget and the ports that it applies to.
type trafficRule struct {
	rule  Rule
	ports []uint32 // none means every port
}

// isPermission reports whether resources of the type yield permissions for inbounds.
func isPermission(t resources.Type) bool {
	return t == resources.TypeMeshTrafficPermission || t == resources.TypeTrafficTarget
}

// NewTrafficTarget reads a TrafficTarget as a policy that allows traffic to the proxies of its destination's service
// account, within the reach of its home. It is valid as long as r and specs are unchanged. It does not fail: a part
// that does not decode or resolves to nothing allows nothing, and is among the policy's problems. Source: seed 003.
//
// Where all that it allows is too much, it means one trust domain of each zone: otherwise a zone with many MeshTrusts would
// take from others' policies what they allow.
func NewTrafficTarget(r *resources.Resource, specs *TrafficSpecs) *Policy {
	all := readTrafficTarget(r, specs, specs.domainsOf(r))
	if all.allows <= maxAllows || all.zone != "" || len(specs.first) == len(specs.domains) {
		return all
	}
	p := readTrafficTarget(r, specs, specs.first)
	p.problem("sources", fmt.Sprintf("each source in all %d trust domains, for each match of each rule, is more than %d: it means one trust "+
		"domain of each zone", len(specs.domains), maxAllows))
	return p
}

func readTrafficTarget(r *resources.Resource, specs *TrafficSpecs, domains []string) *Policy {
	p := &Policy{
		Resource: r, KRI: resources.KRIOf(r), Role: resources.RoleOf(r, specs.systemNamespace), Target: nobody(),
		zone: r.Zone(), namespace: r.HomeNamespace(), systemNamespace: specs.systemNamespace,
		id: lastID.Add(1),
	}
	target, err := resources.SpecAs[resources.TrafficTarget](r)
	if err != nil {
		p.problem("", fmt.Sprintf("the spec does not decode and allows nothing: %v", err))
		return p
	}
	p.Target = &resources.TargetRef{Kind: resources.KindDataplane, Labels: map[string]string{
		resources.LabelServiceAccount: target.Destination.Name,
		resources.LabelNamespace:      cmp.Or(target.Destination.Namespace, p.namespace),
	}}
	p.order = OrderOf(p, nil)
	sources := p.sources(target, specs, domains)
	list := "rules"
	if len(target.Specs) > 0 {
		list = "specs"
	}
	for i, ref := range target.EffectiveRules() {
		if p.allows > maxAllows {
			break
		}
		at := trafficPlace{field: fmt.Sprintf("%s[%d]", list, i), index: i, port: target.Destination.Port}
		p.readTrafficRule(&ref, specs, sources, at)
	}
	return p
}

// nobody returns a target that selects no proxy: no label has an empty name.
func nobody() *resources.TargetRef {
	return &resources.TargetRef{Kind: resources.KindDataplane, Labels: map[string]string{"": ""}}
}

func (p *Policy) problem(field, text string) {
	p.problems = append(p.problems, Warning{Policy: p.KRI, Field: field, Text: text})
}

// sources returns the identities of the clients.
func (p *Policy) sources(target *resources.TrafficTarget, specs *TrafficSpecs, domains []string) []resources.SpiffeIDMatch {
	if len(domains) == 0 {
		p.problem("sources",
			"the mesh has no known MeshTrust here, so no service account has an identity and nothing is allowed")
	}
	var out []resources.SpiffeIDMatch
	for _, s := range target.Sources {
		if len(out) > maxAllows {
			break
		}
		for _, id := range specs.accounts(p, domains, cmp.Or(s.Namespace, p.namespace), s.Name) {
			out = append(out, resources.SpiffeIDMatch{Type: resources.MatchExact, Value: id})
		}
	}
	return out
}

// trafficPlace is a rule's position in its TrafficTarget, and the one port of the destination, if any.
type trafficPlace struct {
	field string
	index int
	port  *uint32
}

func (p *Policy) readTrafficRule(ref *resources.TrafficRule, specs *TrafficSpecs, sources []resources.SpiffeIDMatch,
	at trafficPlace) {
	found := specs.spec(p, ref)
	if found == nil {
		p.problem(at.field, fmt.Sprintf("%s %s resolves to nothing, so it allows nothing", ref.Kind, ref.Name))
		return
	}
	if found.Type == resources.TypeTCPRoute {
		route, err := resources.SpecAs[resources.TCPRoute](found)
		if err != nil {
			p.problem(at.field, fmt.Sprintf("TCPRoute %s does not decode and allows nothing: %v", ref.Name, err))
			return
		}
		var ports []uint32
		if route.Matches != nil {
			ports = route.Matches.Ports
		}
		p.allow(sources, trafficMatch{}, at, ports)
		return
	}
	group, err := resources.SpecAs[resources.HTTPRouteGroup](found)
	if err != nil {
		p.problem(at.field, fmt.Sprintf("HTTPRouteGroup %s does not decode and allows nothing: %v", ref.Name, err))
		return
	}
	for _, name := range ref.Matches {
		if !slices.ContainsFunc(group.Matches, func(m resources.HTTPRouteGroupMatch) bool { return m.Name == name }) {
			p.problem(at.field+".matches", fmt.Sprintf("HTTPRouteGroup %s has no match %s, so it allows nothing",
				ref.Name, name))
		}
	}
	for i := range group.Matches {
		if p.allows > maxAllows {
			return
		}
		if m := &group.Matches[i]; len(ref.Matches) == 0 || slices.Contains(ref.Matches, m.Name) {
			p.allow(sources, requests(m), at, nil)
		}
	}
}

// trafficMatch holds a rule's conditions on a request; it is empty for a connection.
type trafficMatch struct {
	path    *resources.PathMatch
	methods resources.Methods
	headers []HeaderMatch
}

// requests reads one match of an HTTPRouteGroup. The result always has a path, so that it never matches a mere
// connection.
func requests(m *resources.HTTPRouteGroupMatch) trafficMatch {
	out := trafficMatch{path: &resources.PathMatch{Type: resources.MatchPrefix, Value: "/"}}
	if m.PathRegex != "" && m.PathRegex != ".*" {
		out.path = &resources.PathMatch{Type: resources.MatchRegularExpression, Value: m.PathRegex}
	}
	if !slices.Contains(m.Methods, "*") {
		out.methods = m.Methods
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		out.headers = append(out.headers, HeaderMatch{Name: name, Expression: m.Headers[name]})
	}
	return out
}

// allow adds a rule for the sources, on the ports that both the destination and the route name.
func (p *Policy) allow(sources []resources.SpiffeIDMatch, m trafficMatch, at trafficPlace, ports []uint32) {
	if at.port != nil {
		if len(ports) > 0 && !slices.Contains(ports, *at.port) {
			p.problem(at.field, fmt.Sprintf("is for other ports than the destination's port %d, so it allows nothing", *at.port))
			return
		}
		ports = []uint32{*at.port}
	}
	if p.allows += len(sources); p.allows > maxAllows {
		p.problem(at.field, fmt.Sprintf("each source for each match of each rule is more than %d: from here on it allows nothing", maxAllows))
		return
	}
	rule := Rule{Origin: p.KRI, Index: at.index, Headers: m.headers, Order: &p.order, Made: &Made{}}
	for i := range sources {
		rule.Conf.Allow = append(rule.Conf.Allow, resources.PermissionMatch{SpiffeID: &sources[i], Path: m.path,
			Method: m.methods})
	}
	p.traffic = append(p.traffic, trafficRule{rule: rule, ports: ports})
}

// rulesOn returns the policy's rules for an inbound that it selects.
func (p *Policy) rulesOn(in *InboundPort) []Rule {
	if len(p.traffic) == 0 {
		return p.rules
	}
	var out []Rule
	for i := range p.traffic {
		if t := &p.traffic[i]; len(t.ports) == 0 || slices.Contains(t.ports, in.Port) {
			out = append(out, t.rule)
		}
	}
	return out
}
