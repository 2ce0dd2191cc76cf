package xds

import (
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/hostnames"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// network holds the destinations of the zone's proxies: the services and routes in use, and the endpoints and
// identities of the ports in use, built once for all proxies. Proxies.mu guards it.
type network struct {
	store store.Reader
	home  resources.Home
	// assignments returns the current SPIFFE IDs of a mesh's Dataplanes.
	assignments func(mesh string) *identity.Assignments

	// destinations holds the destinations of each mesh. A mesh has no entry after one of them changed. known caches
	// each decoded destination, and former holds the destinations of meshes without an entry before that change.
	destinations map[string]*matching.Destinations
	former       map[string]*matching.Destinations
	known        map[resources.Key]*matching.Destination
	// named holds the service names of each mesh, like destinations.
	named map[string]*hostnames.Names
	// gates holds the egresses of each mesh; a mesh has no entry after one of them changed.
	gates map[string][]*candidate
	ports map[string]*usedPort // by backend.assignment
	// meanings holds what outbounds mean by tags, by the name of the cluster; doubted are those to compute again.
	meanings map[string]*meant
	doubted  map[string]struct{}
	decoded  map[resources.Key]*candidate
	presence *presence

	// Ports and proxies that the current commits affect.
	dirtyPorts   map[*usedPort]struct{}
	dirtyProxies map[*proxy]scope
}

// usedPort is a backend that some proxy sends to.
type usedPort struct {
	*backend
	users map[*proxy]struct{}
	// services holds the MeshServices behind it.
	services []*resources.Resource
	// endpoints is never nil. identities is nil while the mesh trusts nobody, and for ingresses, which do not verify
	// identities.
	endpoints, identities *resource
}

// scope holds the parts of a proxy's state that must be rebuilt.
type scope uint8

const (
	sendingScope  scope = 1 << iota
	observedScope       // the effect of policies on the whole proxy, and what depends on it
	gatewayScope        // the MeshGateway that it serves, and everything but the Dataplane's own parts
	allScope
)

func newNetwork(reader store.Reader, home resources.Home, assignments func(mesh string) *identity.Assignments,
	here *presence) *network {
	return &network{
		presence: here,
		store:    reader, home: home, assignments: assignments, destinations: map[string]*matching.Destinations{}, former: map[string]*matching.Destinations{},
		named: map[string]*hostnames.Names{},
		known: map[resources.Key]*matching.Destination{},
		gates: map[string][]*candidate{}, ports: map[string]*usedPort{}, decoded: map[resources.Key]*candidate{},
		meanings: map[string]*meant{}, doubted: map[string]struct{}{},
		dirtyPorts: map[*usedPort]struct{}{}, dirtyProxies: map[*proxy]scope{},
	}
}

// destinationTypes lists the types that outbounds, routes and policies refer to.
var destinationTypes = []resources.Type{
	resources.TypeMeshService, resources.TypeMeshMultiZoneService, resources.TypeMeshExternalService,
	resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute,
}

// in returns the services and routes of a mesh.
func (n *network) in(mesh string) *matching.Destinations {
	if d := n.destinations[mesh]; d != nil {
		return d
	}
	var all []*matching.Destination
	snap := n.store.Snapshot()
	for _, t := range destinationTypes {
		for r := range snap.List(store.Query{Type: t, Mesh: mesh}) {
			if d := n.destination(r); d != nil {
				all = append(all, d)
			}
		}
	}
	d := matching.NewDestinations(matching.DestinationsConfig{
		Zone: n.home.Zone, SystemNamespace: n.home.SystemNamespace,
		Grants: slices.Collect(snap.List(store.Query{Type: resources.TypeMeshReferenceGrant, Mesh: mesh})), Before: n.former[mesh],
	}, all)
	n.destinations[mesh] = d
	delete(n.former, mesh)
	return d
}

// destination reads a resource, or returns the cached result; nil if it does not decode.
func (n *network) destination(r *resources.Resource) *matching.Destination {
	if d := n.known[r.Key]; d != nil && d.Resource == r {
		return d
	}
	d, err := matching.NewDestination(r)
	if err != nil {
		return nil
	}
	n.known[r.Key] = d
	return d
}

// forget drops the cached result of a destination that changed.
func (n *network) forget(key resources.Key) {
	delete(n.known, key)
	if d := n.destinations[key.Mesh]; d != nil {
		n.former[key.Mesh] = d
		delete(n.destinations, key.Mesh)
	}
	delete(n.named, key.Mesh)
}

// routeChanged drops what depends on a route. That is nothing if references to it mean the same as before: its rules
// are read from the policy.
func (n *network) routeChanged(c *store.Change) {
	if known := n.known[c.Key()]; known == nil || c.New == nil || !known.IsStill(c.New) {
		n.forget(c.Key())
	}
}

// mark schedules a rebuild of parts of a proxy's state.
func (n *network) mark(p *proxy, parts scope) { n.dirtyProxies[p] |= parts }

// use makes the proxy a user of exactly these backends. p.ports then holds their ports, in the same order.
func (n *network) use(p *proxy, backends []*backend, trusted func(mesh string) *trust) {
	next := make([]*usedPort, len(backends))
	for i, b := range backends {
		port := n.ports[b.assignment()]
		switch {
		case port == nil:
			port = &usedPort{backend: b, users: map[*proxy]struct{}{}}
			n.ports[b.assignment()] = port
			n.resolve(port, trusted(b.mesh()))
		case port.tagged != b.tagged, // they mean something else
			b.tagged == nil && port.service.Resource != b.service.Resource: // another revision of the service
			port.backend = b
			n.dirtyPorts[port] = struct{}{}
		}
		port.users[p] = struct{}{}
		next[i] = port
	}
	kept := map[*usedPort]bool{}
	for _, port := range next {
		kept[port] = true
	}
	for _, port := range p.ports {
		if !kept[port] {
			n.leave(p, port)
		}
	}
	p.ports = next
}

func (n *network) leave(p *proxy, port *usedPort) {
	delete(port.users, p)
	if len(port.users) == 0 {
		delete(n.ports, port.assignment())
		delete(n.dirtyPorts, port)
		if port.tagged != nil {
			n.forgetMeaning(port.name)
		}
	}
	if len(n.ports) == 0 {
		clear(n.decoded)
		clear(n.gates)
	}
}

// drop releases all ports that a proxy used.
func (n *network) drop(p *proxy) {
	for _, port := range p.ports {
		n.leave(p, port)
	}
	p.ports = nil
	delete(n.dirtyProxies, p)
}

// resolve rebuilds the endpoints and identities of a port, and reports whether anything changed. Parts that cannot be
// built stay as they were.
func (n *network) resolve(port *usedPort, t *trust) bool {
	old := *port
	port.services = n.servicesOf(port.backend)
	if r, err := n.endpoints(port); err == nil {
		port.endpoints = same(old.endpoints, r)
	}
	if t != nil && !port.localOnly {
		if r, err := n.identities(port, t); err == nil {
			port.identities = same(old.identities, r)
		}
	}
	return port.endpoints != old.endpoints || port.identities != old.identities
}

// same returns old if next is equal to it.
func same(old, next *resource) *resource {
	if old != nil && next != nil && old.version == next.version {
		return old
	}
	return next
}

// servicesOf returns the MeshServices behind a backend.
func (n *network) servicesOf(b *backend) []*resources.Resource {
	r := b.service.Resource
	if b.egress {
		return nil
	}
	if b.tagged != nil {
		return n.tagServices(b.tagged)
	}
	if r.Type != resources.TypeMeshMultiZoneService {
		return []*resources.Resource{r}
	}
	spec, err := resources.SpecAs[resources.MeshMultiZoneService](r)
	if err != nil {
		return nil
	}
	var out []*resources.Resource
	for s := range n.store.Snapshot().List(store.Query{Type: resources.TypeMeshService, Mesh: r.Mesh,
		Labels: spec.Selector.MeshService.MatchLabels}) {
		if b.localOnly && s.Zone() != n.home.Zone || !spec.Selects(s) {
			continue
		}
		out = append(out, s)
	}
	return out
}

// settle resolves the dirty ports and returns the proxies that they affect.
func (n *network) settle(trusted func(mesh string) *trust) map[*proxy]struct{} {
	concerned := map[*proxy]struct{}{}
	for port := range n.dirtyPorts {
		if now := n.known[port.service.Resource.Key]; now != nil && now != port.service {
			if b, ok := newBackend(now, port.section); ok {
				b.localOnly, b.prefer, b.egress = port.localOnly, port.prefer, port.egress
				if b = b.of(port.subset); b.assignment() == port.assignment() { // otherwise it is another port: see use
					port.backend = b
				}
			}
		}
		if n.resolve(port, trusted(port.mesh())) {
			maps.Copy(concerned, port.users)
		}
	}
	clear(n.dirtyPorts)
	return concerned
}
