package xds

import (
	"cmp"
	"slices"
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

	// gateways holds the mesh's MeshGateways, and atGateway the proxies of built-in gateways by each tag that they have.
	gateways  *matching.Gateways
	atGateway map[matching.GatewayTag]map[*proxy]struct{}

	// following holds the proxies by what they follow of services.
	following map[followed]map[*proxy]struct{}

	trust atomic.Pointer[trust] // nil while the mesh trusts nobody
}

func newMesh(name string) *mesh {
	return &mesh{
		name: name, received: matching.NewSet(), confs: matching.NewSet(), whole: matching.NewSet(),
		patches: newPatchReader(), proxies: map[*proxy]struct{}{}, unready: map[*proxy]struct{}{},
		meeting: map[matching.Condition]map[*proxy]struct{}{}, atGateway: map[matching.GatewayTag]map[*proxy]struct{}{},
		following: map[followed]map[*proxy]struct{}{},
		gateways:  matching.NewGateways(func(func(*resources.Resource) bool) {}),
	}
}

func (m *mesh) addProxy(p *proxy) {
	for c := range matching.Conditions(p.target.match) {
		file(m.meeting, c, p)
	}
	if p.target.gateway != nil {
		for tag := range p.target.match.GatewayTags() {
			file(m.atGateway, tag, p)
		}
	}
}

func (m *mesh) removeProxy(p *proxy) {
	for c := range matching.Conditions(p.target.match) {
		unfile(m.meeting, c, p)
	}
	for tag := range p.target.match.GatewayTags() {
		unfile(m.atGateway, tag, p)
	}
}

// file adds a proxy to those under a key.
func file[K comparable](index map[K]map[*proxy]struct{}, under K, p *proxy) {
	if index[under] == nil {
		index[under] = map[*proxy]struct{}{}
	}
	index[under][p] = struct{}{}
}

func unfile[K comparable](index map[K]map[*proxy]struct{}, under K, p *proxy) {
	if delete(index[under], p); len(index[under]) == 0 {
		delete(index, under)
	}
}

// fewest returns the proxies under that one of some keys which has fewest.
func fewest[K comparable](index map[K]map[*proxy]struct{}, keys []K) map[*proxy]struct{} {
	return index[slices.MinFunc(keys, func(a, b K) int { return cmp.Compare(len(index[a]), len(index[b])) })]
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
