package xds

import (
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// mesh is what a mesh's connected proxies share: its policies, read once, and who may be concerned by each. It exists
// while one of its proxies is connected. Proxies.mu guards all of it but trust.
type mesh struct {
	name  string
	since uint64 // commits up to this revision are already in policies

	// received are the policies on what proxies receive, permissions among them.
	received policySet
	// confs are the policies on what proxies send, routes among them.
	confs policySet
	// proxiesAt holds the proxies under each of their hooks.
	proxiesAt map[hook]map[*proxy]struct{}

	trust atomic.Pointer[trust] // nil while nobody is trusted
}

// hook is one thing that a proxy must have for a policy to select it: a label, a name (key nameHook), or nothing.
type hook struct {
	key, value string
}

// nameHook is no label's key.
const nameHook = "\x00name"

func newMesh(name string) *mesh {
	return &mesh{name: name, received: newPolicySet(), confs: newPolicySet(), proxiesAt: map[hook]map[*proxy]struct{}{}}
}

func hookOf(p *matching.Policy) hook {
	if p.Target.KindOrMesh() == resources.KindDataplane && p.Target.Name != "" {
		return hook{nameHook, p.Target.Name}
	}
	if len(p.Target.Labels) > 0 {
		key := slices.Min(slices.Collect(maps.Keys(p.Target.Labels)))
		return hook{key, p.Target.Labels[key]}
	}
	return hook{}
}

func hooksOf(m *matching.Proxy) []hook {
	out := []hook{{}, {nameHook, m.Name}, {nameHook, m.HashedName}}
	for k, v := range m.Labels {
		out = append(out, hook{k, v})
	}
	return out
}

func (m *mesh) addProxy(p *proxy) {
	for _, h := range hooksOf(p.target.match) {
		put(m.proxiesAt, h, p, struct{}{})
	}
}

func (m *mesh) removeProxy(p *proxy) {
	for _, h := range hooksOf(p.target.match) {
		drop(m.proxiesAt, h, p)
	}
}

// selected yields the proxies that a policy selects.
func (m *mesh) selected(p *matching.Policy) iter.Seq[*proxy] {
	return func(yield func(*proxy) bool) {
		for q := range m.proxiesAt[hookOf(p)] {
			if matching.Selects(p, q.target.match) && !yield(q) {
				return
			}
		}
	}
}

func put[H, K comparable, V any](m map[H]map[K]V, h H, k K, v V) {
	if m[h] == nil {
		m[h] = map[K]V{}
	}
	m[h][k] = v
}

func drop[H, K comparable, V any](m map[H]map[K]V, h H, k K) {
	delete(m[h], k)
	if len(m[h]) == 0 {
		delete(m, h)
	}
}
