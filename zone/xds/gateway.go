package xds

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// gateway describes the listeners of a MeshGateway's proxy. It is immutable.
type gateway struct {
	// resource is the MeshGateway; nil if none selects the Dataplane.
	resource *resources.Resource
	kri      string
	tags     map[string]string
	address  string
	ports    []*gatewayPort
	// problems names the listeners that are not served, with the reasons.
	problems []string
}

// gatewayPort is a port of a gateway, with the listeners that share it: one of TCP, or some of HTTP, or some of HTTPS
// and TLS.
type gatewayPort struct {
	// name is the name of Envoy's listener: the gateway's KRI, with the port as section.
	name      string
	port      uint32
	listeners []*gatewayListener
}

// gatewayListener is one of a MeshGateway's listeners.
type gatewayListener struct {
	*meshpb.MeshGateway_Listener
	// field is its position in the MeshGateway.
	field    string
	hostname string
	tags     map[string]string
}

func (l *gatewayListener) is(p meshpb.MeshGateway_Listener_Protocol) bool {
	return l.GetProtocol() == p
}

// http reports whether the gateway reads the listener's requests. It reads HTTPS requests only if it has the
// certificate.
func (l *gatewayListener) http() bool {
	return l.is(meshpb.MeshGateway_Listener_HTTP) || l.is(meshpb.MeshGateway_Listener_HTTPS) && l.terminates()
}

// tls reports whether the listener's clients speak TLS.
func (l *gatewayListener) tls() bool {
	return l.is(meshpb.MeshGateway_Listener_HTTPS) || l.is(meshpb.MeshGateway_Listener_TLS)
}

func (l *gatewayListener) terminates() bool {
	return l.tls() && l.GetTls().GetMode() == meshpb.MeshGateway_TLS_TERMINATE
}

// attaches reports whether a route with these listener tags attaches to this listener.
func (l *gatewayListener) attaches(tags map[string]string) bool { return carries(l.tags, tags) }

// chain returns the name of the filter chain, which is also that of the routes of an HTTPS listener.
func (p *gatewayPort) chain(l *gatewayListener) string {
	if l.tls() {
		return p.name + ":" + l.hostname
	}
	return p.name
}

// listensOn reports whether the gateway has a listener at an address.
func (g *gateway) listensOn(at endpoint) bool {
	return g != nil && g.address == at.address &&
		slices.ContainsFunc(g.ports, func(p *gatewayPort) bool { return p.port == at.port })
}

// gatewayOf reads the MeshGateway that the target serves.
func gatewayOf(t *target) *gateway {
	g := &gateway{resource: t.match.Served()}
	if g.resource == nil {
		g.problems = []string{"networking.gateway: no MeshGateway selects the Dataplane: compare its tags with selectors, which name the tag " +
			resources.LabelNamespace + " of a Dataplane in a namespace"}
		return g
	}
	kri := resources.KRIOf(g.resource)
	g.kri = kri.String()
	spec, err := resources.SpecAs[meshpb.MeshGateway](g.resource)
	if err != nil {
		g.problem("", "does not decode: "+err.Error())
		return g
	}
	dp, err := resources.SpecAs[meshpb.Dataplane](t.dataplane)
	if err == nil {
		g.address = dp.GetNetworking().GetAddress()
	}
	g.tags = spec.GetTags()
	for i, l := range spec.GetConf().GetListeners() {
		field := fmt.Sprintf("conf.listeners[%d]", i)
		if problem := resources.UnservedListener(l); problem != "" {
			g.problem(field, problem)
			continue
		}
		listen := endpoint{g.address, l.GetPort()}
		switch taken := slices.ContainsFunc(slices.Concat(t.inbounds, t.egresses),
			func(in inbound) bool { return in.listen.same(listen) }); {
		case !listen.dialable():
			g.problem(field, "the Dataplane's networking.address: want an IP address")
		case taken:
			g.problem(field, "an inbound or a listener of the Dataplane listens on "+listen.String())
		case t.capture.isAt(listen):
			g.problem(field, "connections are redirected to "+listen.String())
		default:
			g.add(kri.WithSection(strconv.Itoa(int(l.GetPort()))).String(), l, field)
		}
	}
	return g
}

func (g *gateway) problem(field, text string) {
	if field != "" {
		text = field + ": " + text
	}
	g.problems = append(g.problems, g.kri+": "+text)
}

// add adds a listener to its port. The first listener gets the port, or the hostname on it; validation refuses a
// second.
func (g *gateway) add(name string, l *meshpb.MeshGateway_Listener, field string) {
	next := &gatewayListener{MeshGateway_Listener: l, field: field, hostname: resources.GatewayHost(l),
		tags: merged(g.tags, l.GetTags())}
	i := slices.IndexFunc(g.ports, func(p *gatewayPort) bool { return p.port == l.GetPort() })
	if i < 0 {
		g.ports = append(g.ports, &gatewayPort{name: name, port: l.GetPort(), listeners: []*gatewayListener{next}})
		return
	}
	port := g.ports[i]
	if other := port.listeners[0]; !resources.SharePort(other.MeshGateway_Listener, l) {
		g.problem(field, "its port is taken by "+other.field)
		return
	}
	for _, other := range port.listeners {
		if other.hostname == next.hostname {
			g.problem(field, "its port and hostname are taken by "+other.field)
			return
		}
	}
	port.listeners = append(port.listeners, next)
}

// merged returns both sets of tags; the second takes precedence.
func merged(all, own map[string]string) map[string]string {
	out := make(map[string]string, len(all)+len(own))
	for _, tags := range []map[string]string{all, own} {
		for k, v := range tags {
			out[k] = v
		}
	}
	return out
}
