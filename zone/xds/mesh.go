package xds

import (
	"sync/atomic"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// mesh holds what a mesh's connected proxies share: its policies, read once, and the proxies that each may affect. It
// exists while one of its proxies is connected. Proxies.mu guards all of it except trust.
type mesh struct {
	name  string
	since uint64 // commits up to this revision are already in policies
	// asked means that the mesh's initial policies were created: without a policy, no defaults apply.
	asked bool

	// received holds the policies for inbound traffic, including permissions.
	received *matching.Set
	// confs holds the policies for outgoing traffic, including routes.
	confs *matching.Set
	// whole holds the policies of wholeTypes.
	whole *matching.Set
	// patches reads the MeshProxyPatches among them.
	patches *patchReader
	// proxies holds the connected proxies, including those without a Dataplane.
	proxies map[*proxy]struct{}
	// unready holds the proxies that have a Dataplane but never had a config, because it could not be built. changed
	// means that a policy has changed since, which may have been the cause.
	unready map[*proxy]struct{}
	changed bool
	// meeting holds the proxies with a Dataplane by each condition that they meet.
	meeting map[matching.Condition]map[*proxy]struct{}

	trust atomic.Pointer[trust] // nil while the mesh trusts nobody
}

func newMesh(name string) *mesh {
	return &mesh{
		name: name, received: matching.NewSet(), confs: matching.NewSet(), whole: matching.NewSet(),
		patches: newPatchReader(), proxies: map[*proxy]struct{}{}, unready: map[*proxy]struct{}{}, meeting: map[matching.Condition]map[*proxy]struct{}{},
	}
}

func (m *mesh) addProxy(p *proxy) {
	for c := range matching.Conditions(p.target.match) {
		if m.meeting[c] == nil {
			m.meeting[c] = map[*proxy]struct{}{}
		}
		m.meeting[c][p] = struct{}{}
	}
}

func (m *mesh) removeProxy(p *proxy) {
	for c := range matching.Conditions(p.target.match) {
		delete(m.meeting[c], p)
		if len(m.meeting[c]) == 0 {
			delete(m.meeting, c)
		}
	}
}

// add adds p to a set and collects the proxies that it selects.
func (m *mesh) add(set *matching.Set, p *matching.Policy, selected map[*proxy]struct{}) {
	m.changed = true
	m.collect(p, set.Add(p), selected)
}

// remove removes the policy of a key from a set, and collects the proxies that it selected.
func (m *mesh) remove(set *matching.Set, key resources.Key, selected map[*proxy]struct{}) {
	if p, under := set.Get(key); p != nil {
		m.changed = true
		m.collect(p, under, selected)
		set.Remove(key)
	}
}

// collect collects the proxies that a policy selects; they meet its condition.
func (m *mesh) collect(p *matching.Policy, under matching.Condition, selected map[*proxy]struct{}) {
	for q := range m.meeting[under] {
		if matching.Selects(p, q.target.match) {
			selected[q] = struct{}{}
		}
	}
}
