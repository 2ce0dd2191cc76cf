package xds

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/reach"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// inbound is one port of a Dataplane, resolved.
type inbound struct {
	section string                // its name in sectionName and KRIs
	port    *matching.InboundPort // its form for matching
	listen  endpoint              // where the proxy accepts connections
	service endpoint              // where the application does
	logs    []*accesslogv3.AccessLog
	// own is set if it has logs of its own, apart from those of policies, and identifies them.
	own     *inbound
	refused []*accesslogv3.AccessLog // logs of connections without a request
	// serverFirst means that the application may speak before the client does.
	serverFirst bool
	// permissive means that it also accepts plaintext connections; plaintext marks the side of it that does.
	permissive, plaintext bool
	// ownAddress means that the proxy dials the application on an address of the machine that is itself captured.
	ownAddress bool
	// egress means that it is an egress listener, with no application behind it.
	egress bool
	// limits are the limits of its connections.
	limits *connectionLimits
	// breaker limits the load on the application; nil for no limit.
	breaker *inboundBreaker
	// logged holds the logs that MeshAccessLogs configure; nil for none.
	logged *inboundLogs
}

type endpoint struct {
	address string
	port    uint32
}

// behind is an endpoint of a service. absent means that its proxy is not connected.
type behind struct {
	endpoint
	absent bool
	// proxy is nil for an ingress, and ingress is the name of a ZoneIngress. hashed means that the ingress uses the hashed
	// spelling of server names.
	proxy   *matching.Proxy
	ingress string
	hashed  bool
	// server is the server name that it knows, if that is not the cluster's.
	server string
}

// String returns IP:port.
func (e endpoint) String() string {
	return net.JoinHostPort(e.address, strconv.FormatUint(uint64(e.port), 10))
}

// compare orders endpoints by address and port.
func (e endpoint) compare(other endpoint) int {
	return cmp.Or(cmp.Compare(e.address, other.address), cmp.Compare(e.port, other.port))
}

// same reports whether both are the same address, in whatever spelling.
func (e endpoint) same(other endpoint) bool {
	if e.port != other.port {
		return false
	}
	a, errA := resources.ParseIP(e.address)
	b, errB := resources.ParseIP(other.address)
	return e == other || errA == nil && errB == nil && a.Unmap() == b.Unmap()
}

// loopback reports whether the address is reachable only from the machine itself.
func (e endpoint) loopback() bool {
	ip, err := resources.ParseIP(e.address)
	return err == nil && ip.Unmap().IsLoopback()
}

func (e endpoint) proto() *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: e.address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: e.port},
	}}}
}

func (in *inbound) http() bool { return in.port.Protocol == matching.HTTP }

// http2 reports whether the application speaks HTTP/2 only.
func (in *inbound) http2() bool {
	return in.port.AppProtocol == "http2" || in.port.AppProtocol == "grpc"
}

// name returns the name of the inbound's listener.
func (in *inbound) name() string { return "self_inbound_dp_" + in.section }

// chainName returns the name of the filter chain of this side of the inbound.
func (in *inbound) chainName() string {
	if in.plaintext {
		return in.name() + "_plaintext"
	}
	return in.name()
}

// accessKey returns the name of this side's access. A section contains no space.
func (in *inbound) accessKey() string {
	if in.plaintext {
		return in.section + " plaintext"
	}
	return in.section
}

// cluster returns the name of the inbound's cluster. If the application speaks first, its cluster connects only clients
// that the handshake admitted (newCluster). It has a name of its own, so that no filter chain refers to the other kind
// while the setting changes.
func (in *inbound) cluster() string {
	if in.serverFirst {
		return in.name() + "_server_first"
	}
	return in.name()
}

// Names of the filters that come by ECDS. They include the protocol, so the type behind a name never changes.
func (in *inbound) httpFilter() string { return in.chainName() + "_rbac_http" }
func (in *inbound) tcpFilter() string  { return in.chainName() + "_rbac_tcp" }
func (in *inbound) tcpDryRun() string  { return in.chainName() + "_rbac_tcp_dryrun" }
func (in *inbound) handshake() string  { return in.name() + "_handshake" }
func (in *inbound) filterNames() []string {
	if in.http() {
		return []string{in.httpFilter()}
	}
	if in.serverFirst {
		return []string{in.handshake(), in.tcpDryRun(), in.tcpFilter()}
	}
	return []string{in.tcpDryRun(), in.tcpFilter()}
}

// inboundsOf returns the inbounds of a Dataplane that get a listener; match is the same Dataplane. A proxyless
// application listens where other Dataplanes have their proxy. Errors wrap ErrConfig.
func inboundsOf(dp *resources.Resource, match *matching.Proxy, proxyless bool) ([]inbound, error) {
	spec, err := resources.SpecAs[meshpb.Dataplane](dp)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	var out []inbound
	captured := captureOf(spec.GetNetworking())
	sections, sockets := map[string]bool{}, map[endpoint]bool{}
	for i, field := range spec.GetNetworking().GetInbound() {
		if field.GetState() == meshpb.Dataplane_Networking_Inbound_Ignored {
			continue
		}
		in, err := resolve(spec.GetNetworking().GetAddress(), field, &match.Inbounds[i])
		if err == nil && !proxyless && captured.redirects(&in) {
			err = in.throughCapture(spec.GetNetworking().GetAddress())
		} else if err == nil && !proxyless && in.listen.same(in.service) {
			err = fmt.Errorf("proxy and application both at %s:%d: set another address, or servicePort",
				in.listen.address, in.listen.port)
		}
		if err == nil && sections[in.section] {
			err = fmt.Errorf("another inbound is also named %q: rename one", in.section)
		}
		if err == nil && sockets[in.listen] {
			err = fmt.Errorf("another inbound also listens on %s:%d: change one", in.listen.address, in.listen.port)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: networking.inbound[%d]: %w", ErrConfig, dp.Key, i, err)
		}
		sections[in.section], sockets[in.listen] = true, true
		out = append(out, in)
	}
	return out, nil
}

// resolve fills an inbound's defaults and checks its addresses.
func resolve(address string, field *meshpb.Dataplane_Networking_Inbound, port *matching.InboundPort) (inbound, error) {
	in := inbound{
		section: port.Section(),
		port:    port,
		listen:  endpoint{address: cmp.Or(field.GetAddress(), address), port: field.GetPort()},
		service: endpoint{address: cmp.Or(field.GetServiceAddress(), "127.0.0.1"), port: field.GetServicePort()},
	}
	in.serverFirst = !in.http() && port.ServerFirst()
	if in.service.port == 0 {
		in.service.port = in.listen.port
	}
	for _, e := range []endpoint{in.listen, in.service} {
		ip, err := resources.ParseIP(e.address)
		if err != nil {
			return in, fmt.Errorf("address %q: want an IP address", e.address)
		}
		if why := reach.NoApplication(ip); why != "" && e == in.service {
			return in, fmt.Errorf("serviceAddress %s %s: want the application's", e.address, why)
		}
		if e.port == 0 || e.port > 65535 {
			return in, fmt.Errorf("port %d: want 1 to 65535", e.port)
		}
	}
	return in, nil
}
