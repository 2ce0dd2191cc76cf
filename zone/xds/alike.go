package xds

import "slices"

// alike makes proxies share resources with the same bytes. The replicas of an application have the same ports, so their
// clusters and routes are equal.
type alike struct{ table[alikeKey, resource] }

type alikeKey struct {
	kind          kind
	name, version string
}

// alikeKinds are the kinds without data of the proxy itself. A listener has its address, and filters mostly differ.
var alikeKinds = [...]kind{kindCluster, kindRoute}

// share replaces resources of the inbounds by equal ones of another proxy. s is new and not shared yet. The sets are
// not changed in place: they may belong to another state.
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
func (a *alike) one(k kind, r *resource) *resource { return a.put(alikeKey{k, r.name, r.version}, r) }
