package xds

import (
	"cmp"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// candidate is a Dataplane as a possible endpoint. It is immutable.
type candidate struct {
	dataplane *resources.Resource
	match     *matching.Proxy
	// places holds the address of each inbound; an inbound that is not ready has no port.
	places []endpoint
}

// read returns a Dataplane as a candidate, or nil if it does not decode.
func (n *network) read(dp *resources.Resource) *candidate {
	if m := n.decoded[dp.Key]; m != nil && m.dataplane == dp {
		return m
	}
	match, err := matching.NewProxy(dp)
	if err != nil {
		return nil
	}
	spec, err := resources.SpecAs[meshpb.Dataplane](dp)
	if err != nil {
		return nil
	}
	m := &candidate{dataplane: dp, match: match}
	net := spec.GetNetworking()
	for _, in := range net.GetInbound() {
		at := endpoint{address: cmp.Or(in.GetAddress(), net.GetAdvertisedAddress(), net.GetAddress()), port: in.GetPort()}
		if !ready(in) || !at.dialable() {
			at.port = 0
		}
		m.places = append(m.places, at)
	}
	for len(m.places) < len(match.Inbounds) {
		m.places = append(m.places, endpoint{}) // egresses serve no service of the mesh
	}
	n.decoded[dp.Key] = m
	return m
}

// ready reports whether an inbound is ready. An inbound that is not ready gets no requests.
func ready(in *meshpb.Dataplane_Networking_Inbound) bool {
	return in.GetState() == meshpb.Dataplane_Networking_Inbound_Ready &&
		(in.GetHealth() == nil || in.GetHealth().GetReady())
}

// dialable reports whether an endpoint has an IP address. Proxies do not resolve endpoint names.
func (e endpoint) dialable() bool {
	ip, err := resources.ParseIP(e.address)
	return err == nil && !ip.IsUnspecified() && e.port > 0 && e.port <= 65535
}

// servesAny reports whether one of the services selects an inbound of the candidate, ready or not.
func (m *candidate) servesAny(services []*resources.Resource) bool {
	for _, s := range services {
		for i := range m.match.Inbounds {
			if matching.Serves(s, m.match, &m.match.Inbounds[i], "") {
				return true
			}
		}
	}
	return false
}

// candidates returns the Dataplanes that a service of this zone may select. The store's indexes keep them few.
func (n *network) candidates(service *resources.Resource) []*candidate {
	spec, err := resources.SpecAs[resources.MeshService](service)
	if err != nil {
		return nil
	}
	query := store.Query{Type: resources.TypeDataplane, Mesh: service.Mesh, Namespace: &service.Namespace}
	switch {
	case spec.Selector.DataplaneRef != nil:
		key := resources.Key{Type: resources.TypeDataplane, Mesh: service.Mesh, Namespace: service.Namespace,
			Name: spec.Selector.DataplaneRef.Name}
		if dp := n.store.Snapshot().Get(key); dp != nil {
			if m := n.read(dp); m != nil {
				return []*candidate{m}
			}
		}
		return nil
	case spec.Selector.DataplaneLabels != nil:
		query.Labels = spec.Selector.DataplaneLabels.MatchLabels
	}
	var out []*candidate
	for dp := range n.store.Snapshot().List(query) {
		if m := n.read(dp); m != nil {
			out = append(out, m)
		}
	}
	return out
}

// local returns the inbounds of this zone behind a port of a service, or behind a subset of it.
func (n *network) local(service *resources.Resource, section string, subset map[string]string) []behind {
	var out []behind
	for _, m := range n.candidates(service) {
		_, absent := n.presence.absent[m.dataplane.Key]
		for i := range m.match.Inbounds {
			in := &m.match.Inbounds[i]
			if m.places[i].port != 0 && matching.Serves(service, m.match, in, section) && m.match.HasTags(in, subset) {
				out = append(out, behind{endpoint: m.places[i], absent: absent, proxy: m.match})
			}
		}
	}
	return out
}

// ingresses returns where a zone accepts connections from other zones.
func (n *network) ingresses(zone string) []behind {
	var out []behind
	for r := range n.store.Snapshot().List(store.Query{Type: resources.TypeZoneIngress,
		Labels: map[string]string{resources.LabelZone: zone}}) {
		spec, err := resources.SpecAs[meshpb.ZoneIngress](r)
		if err != nil {
			continue
		}
		at := endpoint{
			address: cmp.Or(spec.GetNetworking().GetAdvertisedAddress(), spec.GetNetworking().GetAddress()),
			port:    cmp.Or(spec.GetNetworking().GetAdvertisedPort(), spec.GetNetworking().GetPort()),
		}
		if at.dialable() {
			out = append(out, behind{endpoint: at, ingress: r.Name, hashed: asksByHash(spec)})
		}
	}
	return out
}

// endpoints returns the endpoints of a port in the order of the proxy's preference. Absent proxies are unhealthy. If
// all are absent, none is marked unhealthy: trying is better.
func (n *network) endpoints(port *usedPort) (*resource, error) {
	if port.egress {
		return n.endpointsBy(port)
	}
	priorities := port.prefer.sort(n.whereabouts(port))
	someoneIsThere := slices.ContainsFunc(priorities, func(all []locality) bool {
		return slices.ContainsFunc(all, func(l locality) bool {
			return slices.ContainsFunc(l.endpoints, func(e behind) bool { return !e.absent })
		})
	})
	out := &endpointv3.ClusterLoadAssignment{ClusterName: port.assignment()}
	for i, all := range priorities {
		for _, l := range all {
			out.Endpoints = append(out.Endpoints, l.proto(uint32(i), someoneIsThere))
		}
	}
	if p := port.prefer; p != nil && p.Factor != 0 {
		out.Policy = &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(p.Factor)}
	}
	return newResource(kindEndpoint, port.assignment(), out)
}

// whereabouts returns the endpoints of a port in this zone, and the ingresses of other zones that lead to it.
func (n *network) whereabouts(port *usedPort) (here []behind, away map[string][]behind) {
	if port.tagged != nil {
		return n.taggedEndpoints(port.tagged)
	}
	away = map[string][]behind{} // a zone may have any number of services behind a port
	for _, s := range port.services {
		section, ok := port.memberPort(s)
		switch zone := s.Zone(); {
		case !ok:
		case zone == n.home.Zone:
			here = append(here, n.local(s, section, port.subset)...)
		case away[zone] == nil:
			away[zone] = append([]behind{}, n.ingresses(zone)...)
		}
	}
	return here, away
}

// endpointsBy returns the egresses as the endpoints of a service outside the mesh, under the name of its server.
func (n *network) endpointsBy(port *usedPort) (*resource, error) {
	out := &endpointv3.ClusterLoadAssignment{ClusterName: port.assignment()}
	if all := n.egressEndpoints(port.mesh()); len(all) > 0 {
		someoneIsThere := slices.ContainsFunc(all, func(e behind) bool { return !e.absent })
		out.Endpoints = append(out.Endpoints, (locality{endpoints: all}).proto(0, someoneIsThere))
		for _, e := range out.Endpoints[0].LbEndpoints {
			e.GetEndpoint().Hostname = externalName(port.backend)
		}
	}
	return newResource(kindEndpoint, port.assignment(), out)
}

// proto lists each address once, healthy if any of its Dataplanes is present. If all are absent, it marks none as
// unhealthy.
func (l locality) proto(priority uint32, someoneIsThere bool) *endpointv3.LocalityLbEndpoints {
	slices.SortFunc(l.endpoints, func(a, b behind) int {
		return cmp.Or(a.compare(b.endpoint), compareBool(a.absent, b.absent))
	})
	out := &endpointv3.LocalityLbEndpoints{Priority: priority, Locality: &corev3.Locality{SubZone: l.name}}
	if l.weight > 0 {
		out.LoadBalancingWeight = wrapperspb.UInt32(l.weight)
	}
	for _, e := range slices.CompactFunc(l.endpoints, func(a, b behind) bool { return a.endpoint == b.endpoint }) {
		one := &endpointv3.LbEndpoint{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: e.proto()}},
		}
		if e.hashed {
			one.Metadata = serverNameMetadata(hashedSpelling)
		} else if e.server != "" {
			one.Metadata = serverNameMetadata(e.server)
		}
		if e.absent && someoneIsThere {
			one.HealthStatus = corev3.HealthStatus_UNHEALTHY
		}
		out.LbEndpoints = append(out.LbEndpoints, one)
	}
	return out
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
