package xds

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/hostnames"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// sending holds the resources of a proxy's outbounds. It is immutable.
type sending struct {
	sets [kinds]set
	// refs holds all references to services that were followed, found or not: a change of a possible target affects the
	// proxy.
	refs []resources.BackendRef
	// granted means that a producer's route sends somewhere, so a grant may affect it. joined means that it sends to a
	// service that MeshServices may join.
	granted, joined bool
	// named means that it listens on service addresses: a change of any service affects the proxy.
	named bool
	// egress means that the proxy is an egress: a change of any service outside the mesh affects it. outside means that
	// it sends to such services itself.
	egress, outside bool
	// follows lists these as keys, by which a change finds the proxy: see followsOf.
	follows []followed
	// problems names outbounds without a listener, and parts of policies without effect. ofGateway names those of a
	// MeshGateway and its routes.
	problems, ofGateway []string
	// certificates are a gateway's serving certificates.
	certificates set
	// The inputs that it was built from. clusters are in the order of the plan's, by is the proxy's part of them.
	plan     *plan
	by       presented
	clusters []identified
	placed   []placed
	led      []led
	listened []*listened
	logs     *logRules
}

// sender builds the resources of a proxy's outbounds.
type sender struct {
	target   *target
	secrets  secretNames
	dests    *matching.Destinations
	policies []*matching.Policy
	sources  SourceFunc
	own      OwnFunc
	// names holds the names of the mesh's services; nil for a proxy that listens on no service addresses.
	names *hostnames.Names
	// tagged holds what the outbounds mean by tags, by the name of the cluster.
	tagged map[string]*matching.Tagged
	// accesses holds those of the proxy's inbounds and egresses. byEgress means that the proxy reaches services outside
	// the mesh through an egress; gone means that there is none.
	accesses       accesses
	byEgress, gone bool
	// egress means that the proxy is an egress.
	egress bool
	// asked is the mesh's field.
	asked bool

	http, tcp                   *matching.RouteTable
	timeouts, retries, breakers matching.ToRules
	logs, balancing, health     matching.ToRules

	listens  map[string]bool // by listener name
	backends map[string]*backend
	// spent is how much of maxOwnerRouteBytes owners have used.
	spent map[resources.Owner]int
	// table holds the address of each name that the proxy answers for.
	table map[string]netip.Addr
	// gateway holds the routes of the gateway that the proxy serves, and from the proxy's fields in its logs.
	gateway gatewayRoutes
	from    logSource
	// last is the proxy's current configuration; nil for none.
	last *sending
	out  sending
	// sharing means that the results are shared with other proxies. private means that they cannot be.
	sharing, private bool
}

// destined is an outbound whose service was found.
type destined struct {
	*outbound
	*backend
	name       string // of the listener
	httpRoutes []httpRoute
	tcpRoutes  []weighted
	listens    listens
}

// build builds clusters, listeners and routes, and returns the backends that they need.
func (s *sender) build() (*sending, []*backend, error) {
	p, err := s.plan()
	if err != nil {
		return nil, nil, err
	}
	for _, file := range p.files {
		if s.target.logFiles.use(file) != "" && !p.private { // a shared plan names a file that this proxy cannot open
			if p, err = s.makePlan(); err != nil {
				return nil, nil, err
			}
			break
		}
	}
	out := p.out
	out.plan, out.problems = p, slices.Clone(p.out.problems)
	for k := range out.sets {
		out.sets[k] = slices.Clone(out.sets[k])
	}
	if err := errors.Join(s.listenTo(p, &out), s.place(p, &out), s.lead(p, &out), s.identify(p, &out),
		s.traceRoutes(&out)); err != nil {
		return nil, nil, err
	}
	for k := range out.sets {
		out.sets[k] = newSet(out.sets[k]...)
	}
	out.problems = sorted(out.problems)
	return &out, p.needed, nil
}

// resolve finds the services of the outbounds, and of the routes that take over their traffic.
func (s *sender) resolve() []*destined {
	var found []*destined
	for i := range s.target.outbounds {
		o := &s.target.outbounds[i]
		if o.tags != nil {
			found = append(found, s.resolveTagged(o))
			continue
		}
		s.out.refs = append(s.out.refs, o.ref)
		b, problem := find(s.dests, s.target.match.Referrer(), &o.ref, "")
		if problem != "" {
			s.problem(o.field, problem)
			continue
		}
		found = append(found, s.destine(o, b, s.listenerName(o, b)))
	}
	return found
}

// resolveTagged finds what an outbound means by tags. If they mean nothing, its connections fail until they do.
func (s *sender) resolveTagged(o *outbound) *destined {
	name := matching.TaggedName(s.target.match.Key.Mesh, s.target.match.Namespace, o.tags)
	t := s.tagged[name]
	// A policy's name means the tag if there is no such service, and the service of the same Dataplanes otherwise.
	names := []string{o.tags[resources.TagService]}
	if t.Same != nil {
		names = append(names, t.Same.Resource.DisplayName())
	}
	for _, of := range names {
		s.out.refs = append(s.out.refs,
			resources.BackendRef{TargetRef: resources.TargetRef{Kind: resources.KindMeshService, Name: of}})
	}
	if t.Problem != "" {
		s.problem(o.field, t.Problem)
	}
	b := taggedBackend(name, t)
	return s.destine(o, b, s.listenerName(o, b))
}

// listenerName returns the name of an outbound's listener: the cluster's for the first one.
func (s *sender) listenerName(o *outbound, b *backend) string {
	name := b.name
	if s.listens[name] {
		name = fmt.Sprintf("%s@%s:%d", b.name, o.listen.address, o.listen.port)
	}
	s.listens[name] = true
	return name
}

// destine finds the routes of an outbound.
func (s *sender) destine(o *outbound, b *backend, name string) *destined {
	d := &destined{outbound: o, backend: s.needs(b), name: name}
	if b.http() {
		d.httpRoutes = s.httpRoutes(b)
	} else {
		d.tcpRoutes = s.tcpRoutes(b)
	}
	return d
}

// needs adds a backend, and returns the one of its name.
func (s *sender) needs(b *backend) *backend {
	if known := s.backends[b.name]; known != nil {
		return known
	}
	if b.external != nil {
		s.out.outside = true
		if s.byEgress {
			b = b.viaEgress()
		}
	}
	s.backends[b.name] = b
	return b
}

func (s *sender) problem(at, text string) {
	if text = at + ": " + text; !slices.Contains(s.out.problems, text) {
		s.out.problems = append(s.out.problems, text)
	}
}

// weighted is a share of the traffic. Without a backend its requests fail, because they must not go elsewhere.
type weighted struct {
	name    string
	weight  uint32
	backend *backend
}

// lost is the name of a cluster that does not exist.
const lost = "causeway_unresolved"

// shares resolves the backends of a rule of a route for traffic to b.
func (s *sender) shares(rule *matching.RouteRule, refs []resources.BackendRef, b *backend) []weighted {
	var out []weighted
	for i := range refs {
		ref := refs[i]
		w := weighted{name: lost, weight: 1}
		if ref.Weight != nil {
			w.weight = *ref.Weight
		}
		s.out.refs = append(s.out.refs, ref)
		from := rule.Origin.Policy.Referrer()
		if from.Role == resources.RoleProducer {
			s.out.granted = true
			s.out.joined = s.out.joined || ref.Kind == resources.KindMeshMultiZoneService
		}
		found, problem := find(s.dests, from, &ref, b.section)
		if problem != "" {
			s.problem(rule.Origin.KRI().String(), problem)
		} else {
			w.backend = s.needs(found)
			w.name = found.name
		}
		out = append(out, w)
	}
	return out
}

// concerned reports whether a change of the service may affect the result.
func (s *sending) concerned(r *referent) bool {
	return s.egress && r.Type == resources.TypeMeshExternalService || s.joined && r.Type == resources.TypeMeshService || s.named && slices.Contains(hostnames.Kinds(), r.Type) ||
		slices.ContainsFunc(s.refs, func(ref resources.BackendRef) bool { return r.by(&ref) })
}

// showProblems shows the problems of the proxy's outbounds, and reports whether they changed.
func (p *proxy) showProblems(out *sending) (changed bool) {
	changed = p.record.setProblem(problemGateway, strings.Join(out.ofGateway, "; "))
	return p.record.setProblem(problemOutbounds, strings.Join(out.problems, "; ")) || changed
}
