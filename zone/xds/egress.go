package xds

import (
	"fmt"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/zone/matching"
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
