package callers

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// meshes caches each mesh as of the last question. It is safe for concurrent use.
type meshes struct {
	config *Config
	// numbers are the numbers of rules, which identify inbounds with the same rules.
	numbers atomic.Uint64
	kept    outlooks

	mu     sync.Mutex
	byName map[string]*mesh // guarded by mu
}

// of returns a mesh in its current state, or nil if there is none.
func (m *meshes) of(name string) *mesh {
	m.mu.Lock()
	defer m.mu.Unlock()
	snap := m.config.Store.Snapshot() // under the lock, so that no mesh becomes older
	if snap.Get(resources.Key{Type: resources.TypeMesh, Name: name}) == nil {
		delete(m.byName, name)
		return nil
	}
	before := m.byName[name]
	if before != nil && before.revision == snap.Revision() {
		return before
	}
	if m.byName == nil {
		m.byName = map[string]*mesh{}
	}
	var now *mesh
	if before != nil {
		now = before.follow(m.config, snap)
	}
	if now == nil {
		now = newMesh(m.config, snap, name, before)
	}
	m.byName[name] = now
	return now
}

// mesh is one mesh at one revision, parsed. Only the rules of its inbounds are added later, on first use.
type mesh struct {
	name     string
	revision uint64
	// policies are the permissions by key, traffic the TrafficTargets among them, read from the resources in targets.
	policies map[resources.Key]*matching.Policy
	traffic  []*matching.Policy
	targets  []*resources.Resource
	index    *matching.Index
	services []*resources.Resource
	gateways []*resources.Resource
	// proxies are ordered by zone, namespace and name. byHome finds those of one zone and namespace.
	proxies []*proxy
	byKey   map[resources.Key]*proxy
	byHome  map[home][]*proxy
	// rows are ordered by zone, namespace and name of the service.
	rows []row
}

// home is the zone and namespace of a service and its proxies.
type home struct{ zone, namespace string }

// proxy is a Dataplane with its inbounds. identity is empty if it has none.
type proxy struct {
	resource *resources.Resource
	parsed   *matching.Proxy
	inbounds []*inbound
	identity string
}

// newMesh parses the differences from before, which may be nil.
func newMesh(c *Config, snap store.Snapshot, name string, before *mesh) *mesh {
	if before == nil {
		before = &mesh{}
	}
	list := func(t resources.Type) iter.Seq[*resources.Resource] {
		return snap.List(store.Query{Type: t, Mesh: name})
	}
	m := &mesh{name: name, revision: snap.Revision(), services: slices.Collect(list(resources.TypeMeshService)),
		gateways: slices.Collect(list(resources.TypeMeshGateway))}
	changed := m.readPolicies(c, list, before)
	m.readProxies(c, list(resources.TypeDataplane), before, changed)
	m.readRows()
	m.eachIdentity(c, snap, func(p *proxy, id string) { p.identity = id })
	return m
}

// eachIdentity calls do with each proxy and its identity, which is empty if it has none.
func (m *mesh) eachIdentity(c *Config, snap store.Snapshot, do func(p *proxy, id string)) {
	assignments := map[string]*identity.Assignments{}
	for _, p := range m.proxies {
		zone := p.parsed.Zone
		if assignments[zone] == nil {
			assignments[zone] = c.assignments(snap, m.name, zone)
		}
		id := ""
		if assigned, err := assignments[zone].Of(p.resource); err == nil {
			id = assigned.ID.String()
		}
		do(p, id)
	}
}

// readPolicies returns the policies that differ from before, in both versions.
func (m *mesh) readPolicies(c *Config, list func(resources.Type) iter.Seq[*resources.Resource], before *mesh) (changed []*matching.Policy) {
	m.policies = make(map[resources.Key]*matching.Policy, len(before.policies))
	var all []*matching.Policy
	for r := range list(resources.TypeMeshTrafficPermission) {
		p := before.policies[r.Key]
		if p == nil || p.Resource != r {
			changed = append(changed, p, matching.NewPolicy(r, c.SystemNamespace))
			p = changed[len(changed)-1]
		}
		m.policies[r.Key] = p
		all = append(all, p)
	}
	m.targets = slices.AppendSeq(slices.Collect(list(resources.TypeTrafficTarget)), list(resources.TypeHTTPRouteGroup))
	if m.traffic = before.traffic; !slices.Equal(m.targets, before.targets) {
		m.traffic = matching.TrafficTargets(c.SystemNamespace, list)
		changed = append(append(changed, before.traffic...), m.traffic...)
	}
	for _, p := range m.traffic {
		m.policies[p.Resource.Key] = p
		all = append(all, p)
	}
	for key, p := range before.policies {
		if m.policies[key] == nil {
			changed = append(changed, p)
		}
	}
	if m.index = before.index; len(changed) > 0 || m.index == nil {
		m.index = matching.NewIndex(all)
	}
	return slices.DeleteFunc(changed, func(p *matching.Policy) bool { return p == nil })
}

func (m *mesh) readProxies(c *Config, list iter.Seq[*resources.Resource], before *mesh, changed []*matching.Policy) {
	same := slices.Equal(m.services, before.services) && slices.Equal(m.gateways, before.gateways)
	neighbours := map[home][]*resources.Resource{}
	for _, r := range m.services {
		at := home{r.Zone(), r.HomeNamespace()}
		neighbours[at] = append(neighbours[at], r)
	}
	m.byKey, m.byHome = make(map[resources.Key]*proxy, len(before.byKey)), map[home][]*proxy{}
	for r := range list {
		p := &proxy{resource: r}
		old := before.byKey[r.Key]
		if same && old != nil && old.resource == r {
			p.parsed = old.parsed
			p.inbounds = stillRight(p, old.inbounds, changed)
		} else {
			parsed, err := matching.NewProxy(r)
			if err != nil {
				continue // it gets no listener either
			}
			p.parsed = parsed.WithServices(neighbours[home{parsed.Zone, parsed.Namespace}]).WithGateways(m.gateways, c.SystemNamespace)
			p.inbounds = inboundsOf(p)
		}
		m.proxies = append(m.proxies, p)
		m.byKey[r.Key] = p
	}
	slices.SortFunc(m.proxies, func(a, b *proxy) int {
		return cmp.Or(cmp.Compare(a.parsed.Zone, b.parsed.Zone), cmp.Compare(a.parsed.Namespace, b.parsed.Namespace),
			cmp.Compare(a.parsed.Name, b.parsed.Name))
	})
	for _, p := range m.proxies {
		at := home{p.parsed.Zone, p.parsed.Namespace}
		m.byHome[at] = append(m.byHome[at], p)
	}
}
