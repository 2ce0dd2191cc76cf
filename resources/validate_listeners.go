package resources

import (
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// maxListeners bounds the listeners of a Dataplane.
const maxListeners = 16

// listeners checks the listeners of a Dataplane. An egress belongs to the operator, because traffic of all namespaces
// passes through it in plain text.
func (v *validation) listeners(n *meshpb.Dataplane_Networking, at *fieldPath) {
	if v.peer || !v.few(len(n.GetListeners()), maxListeners, at) {
		return
	}
	names, places := map[string]*fieldPath{}, map[string]*fieldPath{}
	for i, in := range n.GetInbound() {
		inside := top("networking").field("inbound").item(i)
		places[placeOf(n, in.GetAddress(), in.GetPort())] = inside
		if in.GetName() != "" {
			names[in.GetName()] = inside
		}
	}
	for i, l := range n.GetListeners() {
		inside := at.item(i)
		if l.GetType() == meshpb.Dataplane_Networking_Listener_Unspecified {
			v.fail(inside.field("type"), "want ZoneEgress or ZoneIngress")
		}
		if ns := v.customNamespace(); ns != "" && l.GetType() == meshpb.Dataplane_Networking_Listener_ZoneEgress {
			v.fail(inside.field("type"), "an egress sees what all namespaces send out of the mesh: it is in the namespace %s, or in none, and not in %s",
				v.home.systemNamespace(), ns)
		}
		v.port(l.GetPort(), inside.field("port"))
		if l.GetAddress() != "" {
			v.ingressAddress(l.GetAddress(), inside.field("address"))
		}
		if name := l.GetName(); name != "" {
			v.label(inside.field("name"), name)
			v.unique(names, name, inside.field("name"))
		}
		v.unique(places, placeOf(n, l.GetAddress(), l.GetPort()), inside.field("port"))
	}
}

// listenerWarnings warns of listeners without effect.
func listenerWarnings(dp *meshpb.Dataplane) []string {
	var out []string
	for i, l := range dp.GetNetworking().GetListeners() {
		if l.GetType() == meshpb.Dataplane_Networking_Listener_ZoneIngress {
			out = append(out, top("networking").field("listeners").item(i).field("type").String()+
				": this version does not configure proxies by it: write a ZoneIngress")
		}
	}
	return out
}
