package inspect

import (
	"iter"
	"slices"
	"sync"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// views caches the meshes that were requested, parsed for matching at one revision. At a new revision, only changes are
// parsed again. Each existing mesh has at most one view.
type views struct {
	config *Config

	mu sync.Mutex
	// revision is that of all views in meshes. mu guards both.
	revision uint64
	meshes   map[string]*view
	// before holds the views of the previous revision, whose unchanged parts are reused.
	before map[string]*view
	// selected has its own lock.
	selected selected
}

// view is one mesh at one revision. Only its seen changes after it is made.
type view struct {
	config   *Config
	snap     store.Snapshot
	policies map[resources.Key]*matching.Policy
	index    *matching.Index
	found    map[resources.Key]*matching.Destination
	// services are the MeshServices, which declare the protocols of inbounds.
	services []*resources.Resource
	gateways []*resources.Resource
	grants   []*resources.Resource

	// seen is shared by views that differ only in policies.
	seen *destinations
}

// destinations are those of a view, as the proxies of each zone see them.
type destinations struct {
	mu     sync.Mutex
	byZone map[string]*matching.Destinations // guarded by mu
}

// of returns the view of a mesh at the current revision, or nil if the mesh does not exist.
func (v *views) of(mesh string) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	snap := v.config.Store.Snapshot() // under the lock, so that no view is older than its revision
	if snap.Get(resources.Key{Type: resources.TypeMesh, Name: mesh}) == nil {
		return nil
	}
	if at := snap.Revision(); at > v.revision || v.meshes == nil {
		v.revision, v.before, v.meshes = at, v.meshes, map[string]*view{}
	}
	if v.meshes[mesh] == nil {
		before := v.before[mesh]
		now := before.follow(snap, mesh)
		if now == nil {
			now = newView(v.config, snap, mesh, before)
		}
		v.meshes[mesh] = now
		delete(v.before, mesh)
	}
	return v.meshes[mesh]
}

// newView parses a mesh. It reuses unchanged parts of before, which may be nil.
func newView(c *Config, snap store.Snapshot, mesh string, before *view) *view {
	if before == nil {
		before = &view{}
	}
	v := &view{
		config: c, snap: snap, policies: map[resources.Key]*matching.Policy{},
		found: map[resources.Key]*matching.Destination{},
		seen:  &destinations{byZone: map[string]*matching.Destinations{}},
	}
	var all []*matching.Policy
	for _, d := range resources.Descriptors() {
		if d.Policy == nil && !matching.IsDestination(d.Type) {
			continue
		}
		for r := range snap.List(store.Query{Type: d.Type, Mesh: mesh}) {
			if d.Policy != nil {
				p := before.policies[r.Key]
				if p == nil || p.Resource != r {
					p = matching.NewPolicy(r, c.SystemNamespace)
				}
				v.policies[r.Key] = p
				all = append(all, p)
			}
			if d.Type == resources.TypeMeshService {
				v.services = append(v.services, r)
			}
			if matching.IsDestination(d.Type) {
				v.readDestination(r, before.found[r.Key])
			}
		}
	}
	list := func(t resources.Type) iter.Seq[*resources.Resource] {
		return snap.List(store.Query{Type: t, Mesh: mesh})
	}
	for _, p := range matching.TrafficTargets(c.SystemNamespace, list) {
		v.policies[p.Resource.Key] = p
		all = append(all, p)
	}
	v.gateways = slices.Collect(list(resources.TypeMeshGateway))
	v.grants = slices.Collect(list(resources.TypeMeshReferenceGrant))
	v.index = matching.NewIndex(all)
	return v
}

// readDestination skips a resource that does not decode: nothing can refer to it.
func (v *view) readDestination(r *resources.Resource, before *matching.Destination) {
	if before != nil && before.Resource == r {
		v.found[r.Key] = before
		return
	}
	if d, err := matching.NewDestination(r); err == nil {
		v.found[r.Key] = d
	}
}

// destinations returns the services and routes as the proxies of a zone see them.
func (v *view) destinations(zone string) *matching.Destinations {
	v.seen.mu.Lock()
	defer v.seen.mu.Unlock()
	if x := v.seen.byZone[zone]; x != nil {
		return x
	}
	all := make([]*matching.Destination, 0, len(v.found))
	for _, d := range v.found {
		all = append(all, d)
	}
	x := matching.NewDestinations(matching.DestinationsConfig{
		Zone: zone, SystemNamespace: v.config.SystemNamespace, Gateways: v.gateways, Grants: v.grants,
	}, all)
	v.seen.byZone[zone] = x
	return x
}

// candidates returns the policies that may select a proxy, in the order of matching, without those that never reach its
// zone.
func (v *view) candidates(proxy *matching.Proxy) []*matching.Policy {
	var out []*matching.Policy
	for _, p := range v.index.Candidates(proxy) {
		if v.config.crosses(p.Resource, proxy.Zone) {
			out = append(out, p)
		}
	}
	return out
}
