package xds

import "slices"

// alike makes proxies share resources that have the same bytes: the replicas of an application have the same ports, and
// so the same clusters and routes.
type alike struct{ table[alikeKey, resource] }

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
func (a *alike) one(k kind, r *resource) *resource { return a.put(alikeKey{k, r.name, r.version}, r) }
