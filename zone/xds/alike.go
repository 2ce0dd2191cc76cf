package xds

import (
	"runtime"
	"slices"
	"sync"
	"weak"
)

// alike makes proxies share resources that have the same bytes: the replicas of an application have the same ports, and
// so the same clusters and routes. It keeps no resource alive, so it holds only what some proxy has.
type alike struct {
	mu  sync.Mutex
	all map[alikeKey]weak.Pointer[resource] // guarded by mu
}

type alikeKey struct {
	kind          kind
	name, version string
}

// alikeKinds are those that say nothing of the proxy itself. A listener has its address, and a filter mostly differs.
var alikeKinds = [...]kind{kindCluster, kindRoute}

// share replaces resources of the inbounds by equal ones that another proxy has. s was just built, and nobody else has
// it. The sets are not changed in place: they may be those of another state.
func (a *alike) share(s *state) {
	for _, k := range alikeKinds {
		if len(s.receiving[k]) == 0 {
			continue
		}
		shared := slices.Clone(s.receiving[k])
		for i, r := range shared {
			shared[i] = a.one(k, r)
		}
		s.receiving[k], s.sets[k] = shared, shared
	}
}

// one returns the resource that all proxies have for r.
func (a *alike) one(k kind, r *resource) *resource {
	key := alikeKey{k, r.name, r.version}
	a.mu.Lock()
	defer a.mu.Unlock()
	if has := a.all[key].Value(); has != nil {
		return has
	}
	if a.all == nil {
		a.all = map[alikeKey]weak.Pointer[resource]{}
	}
	a.all[key] = weak.Make(r)
	runtime.AddCleanup(r, a.forget, key)
	return r
}

// forget drops the entry of a resource that no proxy has any more.
func (a *alike) forget(key alikeKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all[key].Value() == nil { // otherwise there is a new one
		delete(a.all, key)
	}
}

func (a *alike) size() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all)
}
