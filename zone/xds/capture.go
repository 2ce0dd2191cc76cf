package xds

import (
	"fmt"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
)

const (
	// captureListener accepts the connections that the machine redirects to the proxy.
	captureListener = "causeway_capture"
	// inboundCapture accepts redirected connections that others open to the machine.
	inboundCapture = "causeway_capture_inbound"
	// passCluster forwards a redirected connection to its original destination.
	passCluster = "causeway_passthrough"
	// OwnSource is the address from which a proxy dials an application on the machine's own address. The rules of
	// package capture know it.
	OwnSource = "127.0.0.6"
	// inspection limits how long a connection waits for its client's first bytes. Where servers speak first, each
	// connection waits that long.
	inspection = 500 * time.Millisecond
)

// capture describes how connections are redirected to a Dataplane's proxy: the application's own to port, and others'
// connections to the application to inbound. Zero means no redirection.
type capture struct {
	port, inbound uint32
	ipv6          bool
}

func captureOf(net *meshpb.Dataplane_Networking) capture {
	t := net.GetTransparentProxying()
	family := t.GetIpFamilyMode()
	return capture{port: t.GetRedirectPortOutbound(), inbound: t.GetRedirectPortInbound(),
		ipv6: family == meshpb.Dataplane_Networking_TransparentProxying_DualStack ||
			family == meshpb.Dataplane_Networking_TransparentProxying_IPv6}
}

// isAt reports whether redirected connections arrive at an address.
func (c capture) isAt(at endpoint) bool {
	out := c.port != 0 && (at.same(endpoint{"127.0.0.1", c.port}) || c.ipv6 && at.same(endpoint{"::1", c.port}))
	return out || c.inbound != 0 && at.port == c.inbound
}

// redirects reports whether connections to an inbound's address are redirected to the proxy. Connections within the
// machine, to loopback, are not.
func (c capture) redirects(in *inbound) bool {
	ip, err := resources.ParseIP(in.listen.address)
	return c.inbound != 0 && err == nil && !ip.Unmap().IsLoopback()
}

// listenFor builds the listener for redirected connections. It passes connections to an address of another listener,
// such as a service's, to that listener. It is on loopback, where the machine's own connections are redirected, so
// nobody else reaches it.
func (c capture) listenFor(p *passing) (*resource, error) {
	out := &listenerv3.Listener{
		Name: captureListener, StatPrefix: captureListener, TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		Address:        endpoint{"127.0.0.1", c.port}.proto(),
		UseOriginalDst: wrapperspb.Bool(true),
		FilterChains:   p.chains, FilterChainMatcher: p.choose(),
	}
	if c.ipv6 {
		out.AdditionalAddresses = []*listenerv3.AdditionalAddress{{Address: endpoint{"::1", c.port}.proto()}}
	}
	if p.reads {
		out.ListenerFilters = p.same.inspectors
		out.ListenerFiltersTimeout, out.ContinueOnListenerFiltersTimeout = durationpb.New(inspection), true
	}
	return newResource(kindListener, captureListener, out)
}

// throughCapture resolves how the proxy dials the application of a captured inbound: on loopback, or on an address of
// the machine where only traffic from OwnSource is not redirected back to the proxy.
func (in *inbound) throughCapture(address string) error {
	service, err := resources.ParseIP(in.service.address)
	if err != nil || !in.service.same(endpoint{address, in.service.port}) &&
		!in.service.same(endpoint{in.listen.address, in.service.port}) {
		return nil
	}
	if !service.Unmap().Is4() {
		return fmt.Errorf("serviceAddress %s: what goes to it is redirected to the proxy: want the application on loopback, "+
			"or on an IPv4 address", in.service.address)
	}
	in.ownAddress = true
	return nil
}

// source returns the address from which the proxy dials the application; nil for any.
func (in *inbound) source() *corev3.BindConfig {
	if !in.ownAddress {
		return nil
	}
	return &corev3.BindConfig{SourceAddress: endpoint{OwnSource, 0}.proto().GetSocketAddress()}
}

// inboundListener builds the listener for connections that others open to the machine. It passes a connection to the
// address of an inbound, or of another listener of the proxy, to that. It closes all others.
func (c capture) inboundListener() (*resource, error) {
	same, err := theUnvarying()
	if err != nil {
		return nil, err
	}
	out := &listenerv3.Listener{
		Name: inboundCapture, StatPrefix: inboundCapture, TrafficDirection: corev3.TrafficDirection_INBOUND,
		Address:        endpoint{"0.0.0.0", c.inbound}.proto(),
		UseOriginalDst: wrapperspb.Bool(true),
		FilterChains:   []*listenerv3.FilterChain{same.refused},
	}
	if c.ipv6 {
		out.AdditionalAddresses = []*listenerv3.AdditionalAddress{{Address: endpoint{"::", c.inbound}.proto()}}
	}
	return newResource(kindListener, inboundCapture, out)
}

// newPassCluster builds the cluster for passthrough, in the protocol that the application speaks.
func newPassCluster() (*resource, error) {
	options, err := pack(&upstreamv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &upstreamv3.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &upstreamv3.HttpProtocolOptions_UseDownstreamHttpConfig{
				HttpProtocolOptions: &corev3.Http1ProtocolOptions{}, Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
			},
		},
	})
	if err != nil {
		return nil, err
	}
	return newResource(kindCluster, passCluster, &clusterv3.Cluster{
		Name: passCluster, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST},
		LbPolicy: clusterv3.Cluster_CLUSTER_PROVIDED, ConnectTimeout: durationpb.New(defaultConnectTimeout),
		CircuitBreakers: thresholds(nil),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
	})
}

// bytesChain passes bytes on to a cluster.
func bytesChain(name, cluster string) (*listenerv3.FilterChain, error) {
	proxy, err := pack(&tcpv3.TcpProxy{StatPrefix: name, IdleTimeout: durationpb.New(defaultIdleTimeout),
		ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: cluster}})
	if err != nil {
		return nil, err
	}
	return &listenerv3.FilterChain{Name: name, Filters: []*listenerv3.Filter{{Name: "envoy.filters.network.tcp_proxy",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: proxy}}}}, nil
}

// captured adds the listener for redirected connections, with the destinations that a MeshPassthrough allows.
func (t *target) captured(p *passing) error {
	listener, err := t.capture.listenFor(p)
	if err != nil {
		return err
	}
	t.observed.capture = listener
	t.observed.collectors = append(t.observed.collectors, p.same.passes)
	t.observed.routes = slices.Clone(p.routes)
	return nil
}

// passesUnasked reports whether a mesh allows all outgoing connections where no policy applies.
func passesUnasked(snap store.Snapshot, mesh string) bool {
	r := snap.Get(meshKey(mesh))
	if r == nil {
		return false
	}
	spec, err := resources.SpecAs[meshpb.Mesh](r)
	passes := spec.GetNetworking().GetOutbound().GetPassthrough()
	return err == nil && (passes == nil || passes.GetValue())
}

func meshKey(name string) resources.Key { return resources.Key{Type: resources.TypeMesh, Name: name} }

// workInMeshLocked marks the proxies that a mesh's settings affect.
func (x *Proxies) workInMeshLocked(key resources.Key) {
	m := x.meshes[key.Name]
	if m == nil {
		return
	}
	for p := range m.proxies {
		if p.target != nil && p.target.capture.port != 0 {
			x.network.mark(p, allScope)
		} else if s := p.state.Load(); s != nil && s.sending != nil && s.sending.outside {
			x.network.mark(p, sendingScope)
		}
	}
}
