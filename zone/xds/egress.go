package xds

import (
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// egressesOf returns the egress listeners of a Dataplane, as inbounds: clients are judged there as at an inbound. match
// is the same Dataplane. Errors wrap ErrConfig.
func egressesOf(dp *resources.Resource, match *matching.Proxy) ([]inbound, error) {
	spec, err := resources.SpecAs[meshpb.Dataplane](dp)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	var out []inbound
	for i := range match.Inbounds {
		port := &match.Inbounds[i]
		if !port.Egress {
			continue
		}
		in := inbound{section: port.Section(), port: port, egress: true,
			listen: egressPlace(spec, spec.GetNetworking().GetListeners()[port.Listener])}
		if !in.listen.dialable() {
			return nil, fmt.Errorf("%w: %s: networking.listeners[%d]: %s: want an IP address and a port", ErrConfig, dp.Key,
				port.Listener, in.listen)
		}
		out = append(out, in)
	}
	return out, nil
}

// egressPlace returns the address of a listener.
func egressPlace(dp *meshpb.Dataplane, l *meshpb.Dataplane_Networking_Listener) endpoint {
	at := endpoint{l.GetAddress(), l.GetPort()}
	if at.address == "" {
		at.address = dp.GetNetworking().GetAddress()
	}
	return at
}

// resolveEgress adds all services outside the mesh, if the proxy is an egress, and returns them, one for each server
// name.
func (s *sender) resolveEgress() []*backend {
	if len(s.target.egresses) == 0 {
		return nil
	}
	s.out.egress = true
	var out []*backend
	taken := map[string]string{}
	for _, d := range s.dests.All() {
		if d.Resource.Type != resources.TypeMeshExternalService {
			continue
		}
		for _, b := range s.backendsOf(d.Resource) {
			if other := taken[b.sni()]; other != "" {
				s.problem(b.name, "the egress does not reach it: it has the server name of "+other)
				continue
			}
			taken[b.sni()] = b.name
			out = append(out, b)
		}
	}
	return out
}

// egressListener builds the listener of an egress: a chain for each service outside the mesh, selected by the client's
// server name. Each uses mutual TLS of the mesh, and the permissions of the section judge the client.
func (s *sender) egressListener(in *inbound, services []*backend) (*resource, error) {
	inspector, err := theUnvarying()
	if err != nil {
		return nil, err
	}
	out := &listenerv3.Listener{
		Name: in.name(), StatPrefix: in.name(), Address: in.listen.proto(),
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		ListenerFilters: []*listenerv3.ListenerFilter{{
			Name:       "envoy.filters.listener.tls_inspector",
			ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: inspector.inspector},
		}},
	}
	tls, err := pack(downstreamTLS(s.target, nil))
	if err != nil {
		return nil, err
	}
	for _, b := range services {
		filters, err := egressFilters(in, b)
		if err != nil {
			return nil, err
		}
		out.FilterChains = append(out.FilterChains, &listenerv3.FilterChain{
			Name: b.name, Filters: filters, TransportSocketConnectTimeout: handshakeTime,
			FilterChainMatch: &listenerv3.FilterChainMatch{ServerNames: []string{b.sni()}},
			Metadata:         s.accesses[in.accessKey()].metadata(),
			TransportSocket: &corev3.TransportSocket{Name: "envoy.transport_sockets.tls",
				ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: tls}},
		})
	}
	return newResource(kindListener, in.name(), out)
}

// egressFilters judge a client on its first bytes. Only then does the proxy connect to the service.
func egressFilters(in *inbound, b *backend) ([]*listenerv3.Filter, error) {
	deny, err := pack(rbac.DenyAllNetwork(in.statPrefix()))
	if err != nil {
		return nil, err
	}
	var filters []*listenerv3.Filter
	for _, name := range in.filterNames() {
		filters = append(filters, &listenerv3.Filter{Name: name,
			ConfigType: &listenerv3.Filter_ConfigDiscovery{ConfigDiscovery: discovered(deny)}})
	}
	proxy, err := pack(&tcpv3.TcpProxy{StatPrefix: b.name,
		ClusterSpecifier:    &tcpv3.TcpProxy_Cluster{Cluster: b.name},
		UpstreamConnectMode: tcpv3.UpstreamConnectMode_ON_DOWNSTREAM_DATA,
		MaxEarlyDataBytes:   wrapperspb.UInt32(maxEarlyData)})
	if err != nil {
		return nil, err
	}
	return append(filters, &listenerv3.Filter{Name: "envoy.filters.network.tcp_proxy",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: proxy}}), nil
}

// makeEgress builds the listeners of an egress.
func (s *sender) makeEgress(services []*backend) error {
	for i := range s.target.egresses {
		if len(services) == 0 {
			continue // Envoy refuses a listener without a chain
		}
		listener, err := s.egressListener(&s.target.egresses[i], services)
		if err != nil {
			return fmt.Errorf("egress %q: %w", s.target.egresses[i].section, err)
		}
		s.out.sets[kindListener] = append(s.out.sets[kindListener], listener)
	}
	return nil
}

// viaEgress returns the backend of a service outside the mesh as a proxy reaches it through an egress.
func (b *backend) viaEgress() *backend {
	c := *b
	c.egress = true
	return &c
}

// egresses returns the egresses of this zone in a mesh. Only the operator's count: traffic is in plaintext inside an
// egress, and the owner of a namespace must not read that of others.
func (n *network) egresses(mesh string) []*candidate {
	if known, ok := n.gates[mesh]; ok {
		return known
	}
	out := []*candidate{}
	for _, r := range n.dataplanesIn(mesh) {
		if n.isEgress(r) {
			if m := n.read(r); m != nil {
				out = append(out, m)
			}
		}
	}
	n.gates[mesh] = out
	return out
}

func (n *network) isEgress(r *resources.Resource) bool {
	return r != nil && IsEgress(r, n.home)
}

// IsEgress reports whether a Dataplane is an egress of its zone.
func IsEgress(r *resources.Resource, home resources.Home) bool {
	if r.Type != resources.TypeDataplane || r.Zone() != home.Zone || !home.IsOperators(r.HomeNamespace()) {
		return false
	}
	spec, err := resources.SpecAs[meshpb.Dataplane](r)
	return err == nil && slices.ContainsFunc(spec.GetNetworking().GetListeners(),
		func(l *meshpb.Dataplane_Networking_Listener) bool {
			return l.GetType() == meshpb.Dataplane_Networking_Listener_ZoneEgress
		})
}

// AsksForEgress reports whether a mesh reaches services outside it only through an egress.
func AsksForEgress(mesh *resources.Resource) bool {
	if mesh == nil {
		return false
	}
	spec, err := resources.SpecAs[meshpb.Mesh](mesh)
	return err == nil && spec.GetRouting().GetZoneEgress()
}

// egressEndpoints returns where the egresses of a mesh accept connections.
func (n *network) egressEndpoints(mesh string) []behind {
	var out []behind
	for _, m := range n.egresses(mesh) {
		spec, err := resources.SpecAs[meshpb.Dataplane](m.dataplane)
		if err != nil {
			continue
		}
		_, absent := n.presence.absent[m.dataplane.Key]
		for _, l := range spec.GetNetworking().GetListeners() {
			at := egressPlace(spec, l)
			if l.GetType() == meshpb.Dataplane_Networking_Listener_ZoneEgress && at.dialable() &&
				l.GetState() == meshpb.Dataplane_Networking_Listener_Ready {
				out = append(out, behind{endpoint: at, absent: absent, proxy: m.match})
			}
		}
	}
	return out
}

// egressChanged marks what goes through the egresses of a mesh, after one appeared, disappeared or changed.
func (n *network) egressChanged(mesh string) {
	delete(n.gates, mesh)
	for _, port := range n.ports {
		if port.egress && port.mesh() == mesh {
			n.dirtyPorts[port] = struct{}{}
			for p := range port.users {
				n.mark(p, sendingScope)
			}
		}
	}
}
