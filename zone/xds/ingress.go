package xds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// ingressListener is the name of an ingress's only listener.
const ingressListener = "zone_ingress"

// setIngressLocked gives a zone's ingress a route to each service of the zone. The ingress does not terminate TLS. It
// reads the client's server name and passes the bytes on, so the service sees the client's own identity.
func (x *Proxies) setIngressLocked(p *proxy, r *resources.Resource) {
	if r.Zone() != x.cfg.Home.Zone {
		x.cfg.Log.Warn("a proxy claims to be the ingress of another zone", "name", r.Name, "zone", r.Zone())
		return
	}
	p.ingress = r
	delete(x.presence.retiring, p)
	backends := x.network.exported()
	out, err := ingressOf(r, backends)
	if err != nil {
		x.failed(p, partAll, err)
		return
	}
	p.unbuilt.built(partAll)
	x.network.use(p, backends, x.trusted)
	p.reach(out)
	x.publishLocked(p, (&state{}).with(out, p.state.Load()))
}

// workInIngressLocked applies a change of an ingress: an ingress of this zone affects its proxy, one of another zone
// affects the proxies that send there.
func (x *Proxies) workInIngressLocked(revision uint64, c *store.Change) {
	for _, r := range []*resources.Resource{c.Old, c.New} {
		if r != nil {
			x.network.ingressChanged(r.Zone())
		}
	}
	if c.New == nil {
		delete(x.presence.left, c.Key())
	}
	p := x.proxies[proxyID{Key: c.Key()}]
	switch {
	case p == nil || revision <= p.since:
	case c.New == nil:
		x.retireLocked(p)
	default:
		x.setIngressLocked(p, c.New)
	}
}

// serviceForIngressesLocked marks the ingresses for a rebuild: they lead to every service, and to the subsets that
// routes name.
func (x *Proxies) serviceForIngressesLocked() {
	m := x.meshes[""]
	if m == nil {
		return
	}
	for p := range m.proxies {
		x.network.mark(p, allScope)
	}
}

// exported returns the ports of this zone's services, and of multi-zone services with a member here, one for each
// server name.
func (n *network) exported() []*backend {
	var out []*backend
	snap := n.store.Snapshot()
	add := func(r *resources.Resource) {
		d := n.destination(r)
		if d == nil {
			return
		}
		for _, section := range d.Sections() {
			if b, ok := newBackend(d, section); ok {
				b.localOnly = true
				out = append(out, b)
			}
		}
	}
	for r := range snap.List(store.Query{Type: resources.TypeMeshService,
		Labels: map[string]string{resources.LabelZone: n.home.Zone}}) {
		add(r)
	}
	for r := range snap.List(store.Query{Type: resources.TypeMeshMultiZoneService}) {
		add(r)
	}
	out = append(out, n.subsets()...)
	slices.SortFunc(out, func(a, b *backend) int { return strings.Compare(a.name, b.name) })
	led, seen := ledTo(out, (*backend).sni), map[string]bool{}
	return slices.DeleteFunc(out, func(b *backend) bool {
		twice := led[b.sni()] != b || seen[b.name]
		seen[b.name] = true
		return twice
	})
}

// maxSubsets limits the subsets of one port that an ingress serves, and maxOwnerSubsets those of all services of an owner of a
// namespace: each is a cluster of the ingress, which all namespaces share.
const maxSubsets, maxOwnerSubsets = 32, 1000

// askedSubset is a subset of a port that a route sends to.
type askedSubset struct {
	*backend

	// first orders the owners of routes, of whom by is one: operators and the owner of the service come first. turn counts what
	// one owner's routes ask for of the port, and then of all services of one owner.
	first, turn int
	by          resources.Owner
}

// subsets returns the subsets of this zone's services that the known routes of all zones send to. Each owner of routes has
// the same share of a port, and of an owner's services, so that no other can use up what there is of them.
func (n *network) subsets() []*backend {
	type share struct {
		of    string // a port, or a subset
		owner resources.Owner
	}
	var all []askedSubset
	turns, known := map[share]int{}, map[share]bool{}
	for _, t := range []resources.Type{resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute} {
		for r := range n.store.Snapshot().List(store.Query{Type: t}) {
			refs := resources.SubsetBackends(r)
			if len(refs) == 0 {
				continue
			}
			policy := matching.NewPolicy(r, n.home.SystemNamespace)
			from, owner := policy.Referrer(), policy.Owner()
			if owner.Zone != n.home.Zone {
				owner.Namespace = "" // its zone decides whose it is
			}
			for i := range refs {
				for _, b := range n.subsetPorts(from, &refs[i]) {
					port := share{b.key().String(), owner}
					if turns[port] == maxSubsets || known[share{b.name, owner}] {
						continue
					}
					one := askedSubset{backend: b, first: 1, turn: turns[port], by: owner}
					known[share{b.name, owner}] = true
					turns[port]++
					if owner.IsGlobal() || owner == (resources.Owner{Zone: n.home.Zone}) || owner == n.ownerOf(b) {
						one.first = 0
					}
					all = append(all, one)
				}
			}
		}
	}
	return n.servedSubsets(ofPorts(all))
}

// inTurn sorts by the owners of routes, and then by turns.
func inTurn(all []askedSubset) {
	slices.SortStableFunc(all, func(a, b askedSubset) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.turn, b.turn)) })
}

// ofPorts leaves out what its port has no room for.
func ofPorts(all []askedSubset) []askedSubset {
	inTurn(all)
	of, taken := map[string]int{}, map[string]bool{}
	return slices.DeleteFunc(all, func(one askedSubset) bool {
		port := one.key().String()
		if !taken[one.name] && of[port] < maxSubsets {
			taken[one.name] = true
			of[port]++
		}
		return !taken[one.name]
	})
}

// servedSubsets returns those for which the owner of the services has room, each once.
func (n *network) servedSubsets(all []askedSubset) []*backend {
	turns := map[[2]resources.Owner]int{}
	for i := range all {
		share := [2]resources.Owner{all[i].by, n.ownerOf(all[i].backend)}
		all[i].turn = turns[share]
		turns[share]++
	}
	inTurn(all)
	var out []*backend
	of, taken := map[resources.Owner]int{}, map[string]bool{}
	for i := range all {
		b := all[i].backend
		owner := n.ownerOf(b)
		if taken[b.name] || !owner.IsOperator() && of[owner] == maxOwnerSubsets {
			continue
		}
		taken[b.name] = true
		of[owner]++
		out = append(out, b)
	}
	return out
}

// ownerOf returns the owner of a backend's service.
func (n *network) ownerOf(b *backend) resources.Owner {
	return resources.OwnerOf(b.service.Resource, n.home.SystemNamespace)
}

func namesSubset(route *resources.Resource) bool {
	return route != nil && len(resources.SubsetBackends(route)) > 0
}

// subsetPorts returns the ports of this zone that a reference to a subset may mean.
func (n *network) subsetPorts(from matching.Referrer, ref *resources.BackendRef) []*backend {
	target, problem := n.in(from.Mesh).ResolveBackend(from, ref)
	if problem != "" || target.Destination.Resource.Zone() != n.home.Zone {
		return nil
	}
	sections := []string{target.Section}
	if target.Section == "" {
		sections = target.Destination.Sections()
	}
	var out []*backend
	for _, section := range sections {
		if b, ok := newBackend(target.Destination, section); ok {
			b.localOnly = true
			out = append(out, b.of(ref.Subset()))
		}
	}
	return out
}

// ledTo returns the backend of each server name in one spelling. Dots join the parts of a server name, and service
// names may contain dots, so a service without a namespace can spell the server name of a namespaced one. A namespaced
// service therefore takes precedence. No two services with a namespace share a spelling.
func ledTo(backends []*backend, spelling func(*backend) string) map[string]*backend {
	led := make(map[string]*backend, len(backends))
	for _, b := range backends {
		name := spelling(b)
		if other := led[name]; other == nil || other.service.KRI.Namespace == "" && b.service.KRI.Namespace != "" {
			led[name] = b
		}
	}
	return led
}

// ingressOf builds the listener and the clusters of an ingress.
func ingressOf(r *resources.Resource, backends []*backend) (*sending, error) {
	spec, err := resources.SpecAs[meshpb.ZoneIngress](r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	listen := endpoint{address: spec.GetNetworking().GetAddress(), port: spec.GetNetworking().GetPort()}
	if !listen.dialable() {
		return nil, fmt.Errorf("%w: %s: networking: want an IP address and a port", ErrConfig, r.Key)
	}
	inspector, err := pack(&inspectorv3.TlsInspector{})
	if err != nil {
		return nil, err
	}
	listener := &listenerv3.Listener{
		Name: ingressListener, StatPrefix: ingressListener, Address: listen.proto(),
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		ListenerFilters: []*listenerv3.ListenerFilter{{
			Name:       "envoy.filters.listener.tls_inspector",
			ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: inspector},
		}},
	}
	out, hashed := &sending{}, ledTo(backends, (*backend).hashedSNI)
	for _, b := range backends {
		names := []string{b.sni()}
		if other := b.hashedSNI(); other != "" && hashed[other] == b {
			names = append(names, other)
		}
		chain, cluster, err := passage(b, names)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
		listener.FilterChains = append(listener.FilterChains, chain)
		out.sets[kindCluster] = append(out.sets[kindCluster], cluster)
	}
	out.sets[kindCluster] = newSet(out.sets[kindCluster]...)
	if len(backends) == 0 {
		return out, nil // Envoy refuses a listener without a chain
	}
	packed, err := newResource(kindListener, ingressListener, listener)
	out.sets[kindListener] = set{packed}
	return out, err
}

// passage routes server names to the proxies of their service.
func passage(b *backend, names []string) (*listenerv3.FilterChain, *resource, error) {
	proxy, err := pack(&tcpv3.TcpProxy{
		StatPrefix: b.name, ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: b.name},
		IdleTimeout: durationpb.New(defaultIdleTimeout),
	})
	if err != nil {
		return nil, nil, err
	}
	cluster, err := newResource(kindCluster, b.name, &clusterv3.Cluster{
		Name:                 b.name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: overADS(), ServiceName: b.assignment()},
		ConnectTimeout:       durationpb.New(defaultConnectTimeout),
		CircuitBreakers:      thresholds(nil),
	})
	return &listenerv3.FilterChain{
		Name:             b.name,
		FilterChainMatch: &listenerv3.FilterChainMatch{ServerNames: names},
		Filters: []*listenerv3.Filter{{
			Name: "envoy.filters.network.tcp_proxy", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: proxy},
		}},
	}, cluster, err
}
