package resources

import (
	"maps"
	"slices"
	"strconv"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// meshGateway checks which proxies a MeshGateway selects, and what they listen on. From a peer, it accepts parts that
// no proxy serves, and reports them.
func (v *validation) meshGateway(g *meshpb.MeshGateway) {
	v.gatewaySelectors(g.GetSelectors(), top("selectors"))
	v.gatewayTags(g.GetTags(), top("tags"))
	listeners := g.GetConf().GetListeners()
	at := top("conf").field("listeners")
	if len(listeners) == 0 && !v.peer {
		v.fail(at, "is empty: give at least one listener")
	}
	if !v.few(len(listeners), MaxGatewayListeners, at) || v.peer {
		return
	}
	places, ports := map[string]*fieldPath{}, map[uint32]int{}
	for i, l := range listeners {
		inside := at.item(i)
		v.gatewayListener(l, inside)
		first, shared := ports[l.GetPort()]
		switch {
		case !shared:
			ports[l.GetPort()] = i
		case !SharePort(listeners[first], l):
			v.fail(inside.field("port"), "%d is already taken by %s: only listeners of HTTP, or of HTTPS and TLS, share a port, each with a hostname of its own", l.GetPort(), at.item(first))
			continue
		}
		v.unique(places, GatewayHost(l)+" on port "+strconv.Itoa(int(l.GetPort())), inside.field("hostname"))
	}
}

func (v *validation) gatewaySelectors(selectors []*meshpb.MeshGateway_Selector, at *fieldPath) {
	if len(selectors) == 0 && !v.peer {
		v.fail(at, "is empty: give the tags of the gateway's Dataplanes, as in networking.gateway.tags")
	}
	if !v.few(len(selectors), MaxGatewaySelectors, at) {
		return
	}
	for i, s := range selectors {
		inside := at.item(i).field("match")
		if len(s.GetMatch()) == 0 && !v.peer {
			v.fail(inside, "is empty: give at least one tag")
		}
		v.gatewayTags(s.GetMatch(), inside)
	}
}

func (v *validation) gatewayTags(tags map[string]string, at *fieldPath) {
	if !v.few(len(tags), MaxGatewayTags, at) || v.peer {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if key == "" || len(key) > MaxNameBytes || tags[key] == "" || len(tags[key]) > MaxNameBytes {
			v.fail(at.field(shorten(key)), "want a key and a value of 1 to %d bytes", MaxNameBytes)
		}
	}
}

// Protocols of listeners that proxies serve.
var servedProtocols = []meshpb.MeshGateway_Listener_Protocol{
	meshpb.MeshGateway_Listener_HTTP, meshpb.MeshGateway_Listener_HTTPS, meshpb.MeshGateway_Listener_TLS,
	meshpb.MeshGateway_Listener_TCP,
}

// GatewayHost returns a listener's hostname, or AnyHost if it has none.
func GatewayHost(l *meshpb.MeshGateway_Listener) string {
	if l.GetHostname() == "" {
		return AnyHost
	}
	return l.GetHostname()
}

// SharePort reports whether two listeners can share a port: the host, or the server name of the handshake, tells their
// clients apart.
func SharePort(a, b *meshpb.MeshGateway_Listener) bool {
	byHost, byName := meshpb.MeshGateway_Listener_HTTP, []meshpb.MeshGateway_Listener_Protocol{
		meshpb.MeshGateway_Listener_HTTPS, meshpb.MeshGateway_Listener_TLS}
	return a.GetProtocol() == byHost && b.GetProtocol() == byHost ||
		slices.Contains(byName, a.GetProtocol()) && slices.Contains(byName, b.GetProtocol())
}

func (v *validation) gatewayListener(l *meshpb.MeshGateway_Listener, at *fieldPath) {
	v.port(l.GetPort(), at.field("port"))
	v.gatewayTags(l.GetTags(), at.field("tags"))
	if !slices.Contains(servedProtocols, l.GetProtocol()) {
		v.fail(at.field("protocol"), "want HTTP, HTTPS, TLS or TCP, got %s", l.GetProtocol())
		return
	}
	if l.GetCrossMesh() {
		v.fail(at.field("crossMesh"), "clients of other meshes are not served: leave it out")
	}
	if l.GetResources().GetConnectionLimit() > 0 {
		v.fail(at.field("resources").field("connectionLimit"), "is not enforced: leave it out, and limit the connections of the proxy with its bootstrap")
	}
	tcp := l.GetProtocol() == meshpb.MeshGateway_Listener_TCP
	switch {
	case !IsHostPattern(GatewayHost(l)):
		v.fail(at.field("hostname"), "%q is not a hostname: want a DNS name in lower case, *.a.name, or * for all", shorten(l.GetHostname()))
	case tcp && GatewayHost(l) != AnyHost:
		v.fail(at.field("hostname"), "a listener of TCP cannot tell hosts apart: leave it out, or use the protocol TLS")
	}
	if tcp || l.GetProtocol() == meshpb.MeshGateway_Listener_HTTP {
		if l.GetTls().GetMode() != meshpb.MeshGateway_TLS_NONE || len(l.GetTls().GetCertificates()) > 0 {
			v.fail(at.field("tls"), "a listener of %s takes no TLS: use the protocol HTTPS or TLS, or leave it out", l.GetProtocol())
		}
		return
	}
	v.gatewayTLS(l.GetTls(), at.field("tls"))
}

func (v *validation) gatewayTLS(t *meshpb.MeshGateway_TLS_Conf, at *fieldPath) {
	certificates := at.field("certificates")
	switch t.GetMode() {
	case meshpb.MeshGateway_TLS_TERMINATE:
		if len(t.GetCertificates()) == 0 {
			v.fail(certificates, "is empty: TERMINATE needs a certificate")
		}
	case meshpb.MeshGateway_TLS_PASSTHROUGH:
		if len(t.GetCertificates()) > 0 {
			v.fail(certificates, "has no meaning for PASSTHROUGH, where the service has the certificate: leave it out")
		}
		return
	default:
		v.fail(at.field("mode"), "want TERMINATE or PASSTHROUGH, got %s", t.GetMode())
		return
	}
	if !v.few(len(t.GetCertificates()), MaxGatewayCertificates, certificates) {
		return
	}
	for i, c := range t.GetCertificates() {
		v.gatewayCertificate(GatewaySource(c), certificates.item(i))
	}
}

func (v *validation) gatewayCertificate(s *DataSource, at *fieldPath) {
	if !s.Given() {
		v.fail(at, "want one of secret, file, inline and inlineString")
		return
	}
	if s.File != nil && !IsSourceFile(s.File.Path) {
		v.fail(at.field("file"), "want the name of a file in the folder that the zone has for this mesh (--external-secrets-dir), without a slash, got %q", shorten(s.File.Path))
		return
	}
	if err := s.check(); err != nil {
		v.fail(at, "%v", err)
		return
	}
	if s.Refers() || IsHidden(s.Inline) || IsHidden(s.InlineString) {
		return
	}
	text, err := s.Text()
	if err == nil {
		_, err = ReadServerCertificate([]byte(text))
	}
	if err != nil {
		v.fail(at, "%v", err)
	}
}

// gatewayDataplane checks which gateway a Dataplane's proxy serves.
func (v *validation) gatewayDataplane(n *meshpb.Dataplane_Networking, at *fieldPath) {
	g := n.GetGateway()
	v.gatewayTags(g.GetTags(), at.field("gateway").field("tags"))
	if v.peer || g.GetType() != meshpb.Dataplane_Networking_Gateway_BUILTIN {
		return
	}
	if len(g.GetTags()) == 0 {
		v.fail(at.field("gateway").field("tags"), "is required: the selectors of MeshGateways go by it")
	}
	if len(n.GetInbound()) > 0 {
		v.fail(at.field("inbound"), "the proxy of a built-in gateway listens on what its MeshGateway says: leave it out")
	}
	if len(n.GetOutbound()) > 0 {
		v.fail(at.field("outbound"), "the proxy of a built-in gateway sends where its routes say: leave it out")
	}
}

// gatewayPolicy checks a policy of kind MeshGateway. A route must target kind Mesh and may have hostnames; any other
// policy is for all listeners of the gateway.
func (v *validation) gatewayPolicy(p *Policy, spec *fieldPath) {
	shape := v.resource.Descriptor().Policy
	onGateway := p.TargetRef.KindOrMesh() == KindMeshGateway
	for i := range p.To {
		to, at := &p.To[i], spec.field("to").item(i)
		v.hostnames(to.Hostnames, onGateway, at.field("hostnames"))
		if kind := to.TargetRef.KindOrMesh(); onGateway && shape.Route && kind != KindMesh && !v.peer {
			v.fail(at.field("targetRef").field("kind"), "a route of a gateway is for what the gateway receives: want Mesh, got %s", kind)
		}
	}
	if onGateway && !shape.Route && len(p.TargetRef.Tags) > 0 && !v.peer {
		v.fail(spec.field("targetRef").field("tags"), "select the listeners of routes only: a %s is for all of the gateway", v.resource.Type)
	}
}

// hostnames checks the hostnames of a route.
func (v *validation) hostnames(names []string, onGateway bool, at *fieldPath) {
	if len(names) == 0 || v.peer {
		return
	}
	if v.resource.Type == TypeMeshHTTPRoute && onGateway && v.few(len(names), MaxRouteHostnames, at) {
		for i, name := range names {
			if !IsHostPattern(name) {
				v.fail(at.item(i), "%q is not a hostname: want a DNS name in lower case, *.a.name, or * for all", shorten(name))
			}
		}
	}
}

// UnservedParts returns the parts of a MeshGateway that no proxy serves, and why. They are refused from users, but
// stored from peers.
func UnservedParts(r *Resource) (out []string) {
	g, err := SpecAs[meshpb.MeshGateway](r)
	if err != nil {
		return nil
	}
	at := top("conf").field("listeners")
	for i, l := range g.GetConf().GetListeners() {
		if problem := UnservedListener(l); problem != "" {
			out = append(out, at.item(i).String()+": "+problem)
		}
		if l.GetResources().GetConnectionLimit() > 0 {
			out = append(out, at.item(i).field("resources").field("connectionLimit").String()+": is not enforced")
		}
	}
	return out
}

// UnservedListener returns why no proxy serves a listener of a MeshGateway, regardless of everything else, or "".
func UnservedListener(l *meshpb.MeshGateway_Listener) string {
	mode := l.GetTls().GetMode()
	withTLS := l.GetProtocol() == meshpb.MeshGateway_Listener_HTTPS || l.GetProtocol() == meshpb.MeshGateway_Listener_TLS
	switch {
	case !slices.Contains(servedProtocols, l.GetProtocol()):
		return "the protocol " + l.GetProtocol().String() + " is not served"
	case l.GetCrossMesh():
		return "crossMesh: clients of other meshes are not served, and neither is the listener"
	case l.GetPort() == 0 || l.GetPort() > maxPort:
		return "port: want 1 to 65535"
	case !IsHostPattern(GatewayHost(l)):
		return "hostname: " + strconv.Quote(shorten(l.GetHostname())) + " is not a hostname"
	case withTLS && mode == meshpb.MeshGateway_TLS_NONE:
		return "tls.mode: want TERMINATE or PASSTHROUGH"
	case mode == meshpb.MeshGateway_TLS_TERMINATE && len(l.GetTls().GetCertificates()) == 0:
		return "tls.certificates: there are none"
	case len(l.GetTls().GetCertificates()) > MaxGatewayCertificates:
		return "tls.certificates: there are more than " + strconv.Itoa(MaxGatewayCertificates)
	}
	return ""
}

// listenersOnly warns of tags in a policy that is not a route: only routes can select listeners of a gateway.
func listenersOnly(t Type, p *Policy) []string {
	if p.TargetRef.KindOrMesh() != KindMeshGateway || len(p.TargetRef.Tags) == 0 || t == TypeMeshHTTPRoute ||
		t == TypeMeshTCPRoute {
		return nil
	}
	at := top("spec").field("targetRef").field("tags")
	return []string{at.String() + ": only routes are for some listeners of a gateway, so the policy has no effect"}
}
