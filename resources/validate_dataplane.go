package resources

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/reach"
)

const maxPort = 65535

// TagService is the tag that names the service of an inbound or an outbound.
const TagService = "kuma.io/service"

// tagProtocol is the inbound tag that names the protocol if the field does not.
const tagProtocol = "kuma.io/protocol"

// TagServerFirst is the tag of a TCP inbound whose application sends data before its client does, as mail and database
// servers do. Its values are "true" and "false". It is a tag and not a field so that peers that do not know it preserve
// it.
const TagServerFirst = "causeway.io/server-first"

// protocols are the valid protocols of an inbound or a port.
var protocols = []string{"tcp", "http", "http2", "grpc", "kafka"}

func (v *validation) dataplane(dp *meshpb.Dataplane) {
	at := top("networking")
	n := dp.GetNetworking()
	if n == nil {
		v.fail(at, "is required")
		return
	}
	v.address(n.GetAddress(), at.field("address"), true)
	if n.GetAdvertisedAddress() != "" {
		v.address(n.GetAdvertisedAddress(), at.field("advertisedAddress"), true)
	}
	if len(n.GetInbound()) == 0 && n.GetGateway() == nil && len(n.GetListeners()) == 0 &&
		n.GetTransparentProxying().GetRedirectPortOutbound() == 0 && !v.peer {
		v.fail(at.field("inbound"), "is empty: give at least one, or a gateway")
	}
	if !v.few(len(n.GetInbound()), MaxInbounds, at.field("inbound")) ||
		!v.few(len(n.GetOutbound()), MaxOutbounds, at.field("outbound")) {
		return
	}
	v.inbounds(n, at.field("inbound"))
	v.gatewayDataplane(n, at)
	for i, out := range n.GetOutbound() {
		inside := at.field("outbound").item(i)
		v.port(out.GetPort(), inside.field("port"))
		v.optionalAddress(out.GetAddress(), inside.field("address"))
		if ref := out.GetBackendRef(); ref != nil {
			v.outboundRef(ref, inside.field("backendRef"))
		}
	}
	v.listeners(n, at.field("listeners"))
	v.transparentProxying(n, at.field("transparentProxying"))
	if admin := n.GetAdmin(); admin != nil && admin.GetPort() > maxPort {
		v.port(admin.GetPort(), at.field("admin").field("port"))
	}
}

// few reports whether a list is within its limit.
func (v *validation) few(n, most int, at *fieldPath) bool {
	if n > most {
		v.fail(at, "has %d items, want at most %d", n, most)
	}
	return n <= most
}

// inbounds checks that each inbound has a unique port on its address, and a unique name if it has one.
func (v *validation) inbounds(n *meshpb.Dataplane_Networking, at *fieldPath) {
	names, places := map[string]*fieldPath{}, map[string]*fieldPath{}
	for i, in := range n.GetInbound() {
		inside := at.item(i)
		v.port(in.GetPort(), inside.field("port"))
		if in.GetServicePort() > maxPort {
			v.port(in.GetServicePort(), inside.field("servicePort"))
		}
		v.optionalAddress(in.GetAddress(), inside.field("address"))
		v.optionalAddress(in.GetServiceAddress(), inside.field("serviceAddress"))
		v.application(in.GetServiceAddress(), inside.field("serviceAddress"))
		if name := in.GetName(); name != "" {
			v.label(inside.field("name"), name)
			v.unique(names, name, inside.field("name"))
		}
		v.unique(places, placeOf(n, in.GetAddress(), in.GetPort()), inside.field("port"))
		v.protocol(in.GetProtocol(), inside.field("protocol"))
		v.protocol(in.GetTags()[tagProtocol], inside.field("tags").field(tagProtocol))
		v.serverFirst(in, inside.field("tags").field(TagServerFirst))
	}
}

// placeOf returns the address that a proxy listens on, in one spelling. An empty address means the Dataplane's.
func placeOf(n *meshpb.Dataplane_Networking, address string, port uint32) string {
	address = cmp.Or(address, n.GetAddress())
	if ip, err := ParseIP(address); err == nil {
		address = ip.Unmap().String()
	}
	return net.JoinHostPort(address, strconv.Itoa(int(port)))
}

func (v *validation) serverFirst(in *meshpb.Dataplane_Networking_Inbound, at *fieldPath) {
	value, there := in.GetTags()[TagServerFirst]
	protocol := cmp.Or(in.GetProtocol(), in.GetTags()[tagProtocol])
	switch {
	case !there || v.peer:
	case value != "true" && value != "false":
		v.fail(at, "want \"true\" or \"false\", got %q", shorten(value))
	case value == "true" && slices.Contains([]string{"http", "http2", "grpc"}, protocol):
		v.fail(at, "the application never speaks first on an inbound of the protocol %s: remove the tag", protocol)
	}
}

// unique records value at this path, or a problem if another path already has it. Peers may repeat values: they list
// the port of a pod once for each service that selects it.
func (v *validation) unique(taken map[string]*fieldPath, value string, at *fieldPath) {
	if first, twice := taken[value]; twice && !v.peer {
		v.fail(at, "%s is already taken by %s", value, first)
		return
	}
	taken[value] = at
}

func (v *validation) outboundRef(ref *meshpb.Dataplane_Networking_Outbound_BackendRef, at *fieldPath) {
	kinds := []string{KindMeshService, KindMeshExternalService, KindMeshMultiZoneService}
	if !slices.Contains(kinds, ref.GetKind()) {
		v.fail(at.field("kind"), "want one of %s, got %q", strings.Join(kinds, ", "), shorten(ref.GetKind()))
	}
	if ref.GetName() == "" && len(ref.GetLabels()) == 0 {
		v.fail(at.field("name"), "is required, or labels")
	}
	if ref.GetName() != "" && len(ref.GetLabels()) > 0 {
		v.fail(at.field("labels"), "cannot be combined with name: use one of them")
	}
	if ref.GetPort() > maxPort {
		v.port(ref.GetPort(), at.field("port"))
	}
}

// address checks that s is an IP address or a DNS name. A proxy's own address cannot be the unspecified one.
func (v *validation) address(s string, at *fieldPath, own bool) {
	if s == "" {
		v.fail(at, "is required: an IP address or a DNS name")
		return
	}
	ip, err := ParseIP(s)
	switch {
	case err == nil && own && ip.IsUnspecified():
		v.fail(at, "%s is unreachable for others: give the address that they reach", s)
	case err != nil && (!isSubdomain(s) || looksNumeric(s)):
		v.fail(at, "%q is neither an IP address nor a DNS name", shorten(s))
	}
}

func (v *validation) optionalAddress(s string, at *fieldPath) {
	if s != "" {
		v.address(s, at, false)
	}
}

// ParseIP parses an address for the configuration of proxies. It refuses one with a zone, such as fe80::1%eth0: that is
// valid on one machine only, and an Envoy without that interface rejects everything sent with it.
func ParseIP(s string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(s)
	if err == nil && ip.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q has a zone, which is meaningless to others", shorten(s))
	}
	return ip, err
}

// application refuses addresses to which a proxy must not lead its callers.
func (v *validation) application(s string, at *fieldPath) {
	ip, err := ParseIP(s)
	if err != nil || v.peer {
		return
	}
	if why := reach.NoApplication(ip); why != "" {
		v.fail(at, "%s %s: give the application's address, or leave it out for 127.0.0.1", s, why)
	}
}

// looksNumeric reports whether s consists of digits and dots. A malformed IPv4 address, such as 300.1.2.3, has the form
// of a DNS name.
func looksNumeric(s string) bool { return strings.Trim(s, "0123456789.") == "" }

func (v *validation) port(p uint32, at *fieldPath) {
	if p == 0 || p > maxPort {
		v.fail(at, "want 1 to %d, got %d", maxPort, p)
	}
}

func (v *validation) protocol(p string, at *fieldPath) {
	if p != "" && !slices.Contains(protocols, p) {
		if v.peer {
			return // an unknown protocol is treated as tcp
		}
		v.fail(at, "unknown protocol %q, want one of %s", shorten(p), strings.Join(protocols, ", "))
	}
}
