package accesslog

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// otherPolicies is what policies are counted as that the zone does not have: a proxy can make up as many as it likes, and none of
// them takes the counter of one that exists.
const otherPolicies = "other"

// firstSweep is at how many policies it is first looked whether some are gone.
const firstSweep = 1024

// counters knows which policies have counters of their own: those that exist. Safe for concurrent use.
type counters struct {
	decisions *prometheus.CounterVec
	store     store.Reader

	mu sync.Mutex
	// known are the policies that have counters. Guarded by mu.
	known map[string]struct{}
	// sweepAt is at how many of them those that are gone lose theirs. Guarded by mu.
	sweepAt int
}

// name is what a proxy of a mesh is counted under for who it says decided: a decision that no policy makes, a policy of its mesh, or
// otherPolicies.
func (c *counters) name(mesh, policy string) string {
	switch policy {
	case rbac.NameDefault, rbac.NameMultipleURISANs, rbac.NameMalformedURISAN, rbac.NameHandshakeUnjudged, rbac.NameHandshakeUnnamed:
		return policy
	}
	kri, err := resources.ParseKRI(policy)
	if err != nil || kri.Mesh != mesh {
		return otherPolicies
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.known[policy]; there {
		return policy
	}
	if !c.exists(kri) {
		return otherPolicies
	}
	if len(c.known) >= c.sweepAt {
		c.sweepLocked()
	}
	c.known[policy] = struct{}{}
	return policy
}

// exists asks the store by an index: its cost does not grow with the number of policies.
func (c *counters) exists(kri resources.KRI) bool {
	if kri.Section != "" {
		return false
	}
	found := api.Find(c.store, kri)
	return found != nil && (found.Type == resources.TypeMeshTrafficPermission || found.Type == resources.TypeTrafficTarget)
}

// sweepLocked takes the counters of policies that are gone away.
func (c *counters) sweepLocked() {
	for policy := range c.known {
		if kri, err := resources.ParseKRI(policy); err != nil || !c.exists(kri) {
			delete(c.known, policy)
			c.decisions.DeletePartialMatch(prometheus.Labels{"policy": policy})
		}
	}
	c.sweepAt = max(firstSweep, 2*len(c.known))
}
