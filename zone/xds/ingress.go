package xds

import (
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
