package xds

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/zone/hostnames"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// maxNamed limits a proxy's listeners for service names.
const maxNamed = 1024

// answersNames reports whether a proxy listens on the addresses of service names: its bootstrap must say where it
// answers DNS queries, or that the cluster's resolver knows the names.
func (t *target) answersNames() bool {
	return t.dns != nil && !t.proxyless && (!t.dns.cluster || t.capture.port != 0)
}

// listensOnNames reports whether a proxy listens on service addresses: those of names, and those that the application
// dials itself, if they are redirected to it.
func (t *target) listensOnNames() bool {
	return t.answersNames() || t.capture.port != 0 && !t.proxyless
}

// reachable limits the destinations of a Dataplane. The zero value is no limit.
type reachable struct {
	refs    []resources.BackendRef
	limited bool
}

func reachableOf(dp *meshpb.Dataplane) (out reachable) {
	backends := dp.GetNetworking().GetTransparentProxying().GetReachableBackends()
	for _, r := range backends.GetRefs() {
		out.refs = append(out.refs, resources.BackendRef{Port: r.GetPort().GetValue(), TargetRef: resources.TargetRef{
			Kind: r.GetKind(), Name: r.GetName(), Namespace: r.GetNamespace(), Labels: r.GetLabels()}})
	}
	out.limited = backends != nil
	return out
}

// mayReach returns a function that reports which service ports the proxy may have a listener for.
func (s *sender) mayReach() func(matching.ResourceKey) bool {
	if !s.target.reachable.limited {
		return func(matching.ResourceKey) bool { return true }
	}
	within, refs := map[matching.ResourceKey]bool{}, s.target.reachable.refs
	for i := range refs {
		ref := refs[i].TargetRef
		if refs[i].Port != 0 {
			ref.SectionName = fmt.Sprint(refs[i].Port)
		}
		targets, problem := s.dests.Resolve(s.target.match.Referrer(), &ref)
		if problem != "" {
			s.problem(fmt.Sprintf("networking.transparentProxying.reachableBackends.refs[%d]", i), problem)
		}
		for _, t := range targets {
			within[t.Key()] = true
		}
	}
	return func(k matching.ResourceKey) bool { return within[k] || within[k.Whole()] }
}

// namedService is a service with a name, and its ports.
type namedService struct {
	*hostnames.Service
	backends []*backend
	// first, then turn, decide when it gets its listeners.
	first, turn int
}

// namedServices returns the services with names, in the order in which they get listeners until the limit: those of
// operators, those of the proxy's own namespace, then the others, so that each namespace of the zone, and each other
// zone, gets an equal share. Otherwise the owner of one could use up the limit.
func (s *sender) namedServices(may func(matching.ResourceKey) bool) []*namedService {
	var out []*namedService
	taken := map[resources.Owner]int{}
	for _, service := range s.names.Services {
		if len(s.addressesOf(service)) == 0 {
			continue
		}
		next := &namedService{Service: service, first: 2}
		for _, b := range s.backendsOf(service.Resource) {
			if may(b.key()) {
				next.backends = append(next.backends, b)
			}
		}
		owner := resources.Owner{Zone: service.Resource.Zone(), Namespace: service.Resource.HomeNamespace()}
		switch {
		case service.OfOperator():
			next.first = 0
		case owner == (resources.Owner{Zone: s.target.match.Zone, Namespace: s.target.match.Namespace}):
			next.first = 1
		case owner.Zone != s.target.match.Zone:
			owner.Namespace = "" // its zone decides whose it is
		}
		next.turn = taken[owner]
		taken[owner] += len(next.backends)
		out = append(out, next)
	}
	slices.SortStableFunc(out, func(a, b *namedService) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.turn, b.turn))
	})
	return out
}

// addressesOf returns the addresses of a service on which the proxy listens: that of its names and, with capture, its
// own.
func (s *sender) addressesOf(service *hostnames.Service) (out []netip.Addr) {
	captured := s.target.capture.port != 0
	if len(service.Given) > 0 && s.target.answersNames() && s.target.dns.cluster {
		return service.ClusterAddresses()
	}
	if len(service.Given) > 0 && s.target.answersNames() {
		out = append(out, service.VIP)
		if !captured {
			out[0] = hostnames.Loopback(service.VIP)
		}
	}
	if captured {
		out = append(out, service.Addresses...)
	}
	return out
}

// receivesFor reports whether the addresses that a service was assigned are the proxy's own: those of its inbounds, or all that
// it has, as those of one pod behind a headless Service. A pod may have the address of another that is gone, which that one's
// service still has.
func (t *target) receivesFor(d *destined) bool {
	if !d.assigned {
		return false
	}
	for i := range t.inbounds {
		if t.inbounds[i].listen.address == d.listen.address {
			return true
		}
	}
	return t.isAlone(d.backend.service.Resource)
}

// isAlone reports whether the proxy's own pod is all that is behind a service, whose assigned addresses are the pod's: that of
// one pod behind a headless Service.
func (t *target) isAlone(service *resources.Resource) bool {
	if service.Labels[resources.LabelHeadless] != "true" || service.HomeNamespace() != t.match.Namespace ||
		service.Zone() != "" && service.Zone() != t.match.Zone {
		return false
	}
	spec, err := resources.SpecAs[resources.MeshService](service)
	return err == nil && spec.Selector.DataplaneRef != nil && spec.Selector.DataplaneRef.Name == t.match.Name
}

// resolveNamed adds a listener for each port of a service with a name or addresses of its own, on each address, and
// collects the names.
func (s *sender) resolveNamed() (found []*destined) {
	if !s.target.listensOnNames() {
		return nil
	}
	s.out.named, s.table = true, map[string]netip.Addr{}
	left := 0
	taken := map[endpoint]bool{}
	for i := range s.target.outbounds {
		taken[s.target.outbounds[i].listen] = true
	}
	for _, service := range s.namedServices(s.mayReach()) {
		addresses, some := s.addressesOf(service.Service), false
		for _, b := range service.backends {
			for _, at := range addresses {
				listen := endpoint{address: at.String(), port: b.number}
				if len(found) == maxNamed {
					left++
					continue
				}
				some = true
				if taken[listen] {
					continue // an outbound of the Dataplane, or a service that comes first, has the address
				}
				taken[listen] = true
				b = s.needs(b) // only now: it becomes a cluster
				found = append(found, s.destine(&outbound{listen: listen, field: b.name,
					redirected: s.target.capture.port != 0, assigned: slices.Contains(service.Addresses, at)},
					b, fmt.Sprintf("%s@%s:%d", b.name, listen.address, listen.port)))
			}
		}
		if some && s.target.answersNames() {
			for _, given := range service.Given {
				s.table[given.Hostname] = addresses[0]
			}
		}
	}
	if left > 0 {
		s.problem("names", fmt.Sprintf("%d ports of named services are omitted, because a proxy has listeners for at most %d: list the needed ones in networking.transparentProxying.reachableBackends",
			left, maxNamed))
	}
	return found
}

// backendsOf returns the ports of a service that proxies can send to.
func (s *sender) backendsOf(r *resources.Resource) []*backend {
	d := s.dests.Find(r.Key)
	if d == nil || !matching.Reachable(d) {
		return nil
	}
	var out []*backend
	for _, section := range d.Sections() {
		if b, ok := newBackend(d, section); ok {
			out = append(out, b)
		}
	}
	return out
}

// names returns the names of a mesh's services.
func (n *network) names(mesh string) *hostnames.Names {
	if n.named[mesh] == nil {
		n.named[mesh] = hostnames.Read(n.store.Snapshot(), mesh, n.home)
	}
	return n.named[mesh]
}

// workInGeneratorLocked marks the proxies that serve names.
func (x *Proxies) workInGeneratorLocked() {
	clear(x.network.named)
	for _, m := range x.meshes {
		for p := range m.proxies {
			if p.target != nil && p.target.listensOnNames() {
				x.network.mark(p, sendingScope)
			}
		}
	}
}

// namesKey is everything that the listener for names depends on.
type namesKey struct{ table, server string }

// namesListener returns the listener on which the proxy answers for names.
func (s *sender) namesListener(p *plan) (*resource, error) {
	return s.target.shared.names.get(namesKey{p.tableText, fmt.Sprint(*s.target.dns)},
		func() (*resource, error) { return s.target.dns.listener(p.table) })
}

func tableText(table map[string]netip.Addr) string {
	var out strings.Builder
	for _, name := range sortedNames(table) {
		fmt.Fprintln(&out, name, table[name])
	}
	return out.String()
}

// sortedNames returns the names of a table in order.
func sortedNames(table map[string]netip.Addr) []string {
	out := make([]string, 0, len(table))
	for name := range table {
		out = append(out, name)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
