package resources

import (
	"cmp"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// maxReachable bounds the backends that a Dataplane declares reachable.
const maxReachable = 1024

// transparentProxying checks the ports that connections are redirected to, and the names of reachable backends.
func (v *validation) transparentProxying(n *meshpb.Dataplane_Networking, at *fieldPath) {
	t := n.GetTransparentProxying()
	if t == nil || v.peer {
		return
	}
	outbound := at.field("redirectPortOutbound")
	for _, port := range []struct {
		value uint32
		at    *fieldPath
	}{{t.GetRedirectPortInbound(), at.field("redirectPortInbound")}, {t.GetRedirectPortOutbound(), outbound}} {
		if port.value != 0 {
			v.port(port.value, port.at)
		}
	}
	if t.GetRedirectPortOutbound() != 0 {
		v.captureAlone(n, outbound)
	}
	if t.GetRedirectPortInbound() != 0 {
		v.inboundCaptureAlone(n, at.field("redirectPortInbound"))
	}
	v.reachableBackends(t.GetReachableBackends().GetRefs(), at.field("reachableBackends").field("refs"))
}

// captureAlone checks that nothing else listens where connections are redirected to: on 127.0.0.1, and on ::1 with
// IPv6.
func (v *validation) captureAlone(n *meshpb.Dataplane_Networking, at *fieldPath) {
	t := n.GetTransparentProxying()
	port := t.GetRedirectPortOutbound()
	own := []string{placeOf(n, "127.0.0.1", port)}
	if t.GetIpFamilyMode() == meshpb.Dataplane_Networking_TransparentProxying_DualStack ||
		t.GetIpFamilyMode() == meshpb.Dataplane_Networking_TransparentProxying_IPv6 {
		own = append(own, placeOf(n, "::1", port))
	}
	check := func(list string, i int, address string, port uint32) {
		if slices.Contains(own, placeOf(n, address, port)) {
			v.fail(at, "%d is already taken by networking.%s[%d]", port, list, i)
		}
	}
	for i, in := range n.GetInbound() {
		check("inbound", i, in.GetAddress(), in.GetPort())
	}
	for i, l := range n.GetListeners() {
		check("listeners", i, l.GetAddress(), l.GetPort())
	}
	for i, out := range n.GetOutbound() {
		check("outbound", i, cmp.Or(out.GetAddress(), "127.0.0.1"), out.GetPort())
	}
}

// inboundCaptureAlone checks that nothing else listens where incoming connections are redirected to, on any address,
// and that captured inbounds have an address, by which the proxy distinguishes them from other listeners.
func (v *validation) inboundCaptureAlone(n *meshpb.Dataplane_Networking, at *fieldPath) {
	port := n.GetTransparentProxying().GetRedirectPortInbound()
	check := func(list string, i int, other uint32) {
		if other == port {
			v.fail(at, "%d is already taken by networking.%s[%d]", port, list, i)
		}
	}
	if port == n.GetTransparentProxying().GetRedirectPortOutbound() {
		v.fail(at, "%d is redirectPortOutbound too: want another", port)
	}
	for i, in := range n.GetInbound() {
		check("inbound", i, in.GetPort())
		if ip, err := ParseIP(in.GetAddress()); err == nil && ip.IsUnspecified() {
			v.fail(top("networking").field("inbound").item(i).field("address"),
				"want one address of the machine where connections are redirected, got %s", in.GetAddress())
		}
	}
	for i, l := range n.GetListeners() {
		check("listeners", i, l.GetPort())
	}
	for i, out := range n.GetOutbound() {
		check("outbound", i, out.GetPort())
	}
}

func (v *validation) reachableBackends(
	refs []*meshpb.Dataplane_Networking_TransparentProxying_ReachableBackendRef, at *fieldPath) {
	if !v.few(len(refs), maxReachable, at) {
		return
	}
	kinds := []string{KindMeshService, KindMeshExternalService, KindMeshMultiZoneService}
	for i, ref := range refs {
		inside := at.item(i)
		if !slices.Contains(kinds, ref.GetKind()) {
			v.fail(inside.field("kind"), "want one of %s, got %q", strings.Join(kinds, ", "), shorten(ref.GetKind()))
		}
		if (ref.GetName() == "") == (len(ref.GetLabels()) == 0) {
			v.fail(inside.field("name"), "want either name or labels")
		}
		if ref.GetPort() != nil {
			v.port(ref.GetPort().GetValue(), inside.field("port"))
		}
	}
}

// captureWarnings warns of capture settings without effect.
func captureWarnings(dp *meshpb.Dataplane) []string {
	t, at := dp.GetNetworking().GetTransparentProxying(), top("networking").field("transparentProxying")
	var out []string
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"directAccessServices", len(t.GetDirectAccessServices()) > 0},
		{"reachableServices", len(t.GetReachableServices()) > 0},
		{"ipFamilyMode", t.GetIpFamilyMode() != 0 && t.GetRedirectPortOutbound() == 0 && t.GetRedirectPortInbound() == 0},
	} {
		if field.set {
			out = append(out, at.field(field.name).String()+": this version does not configure proxies by it")
		}
	}
	return out
}
