package accesslog

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// otherPolicies is the label for policies that do not exist in the zone. A proxy can invent any number of names; none
// of them uses up the counter of a policy that exists.
const otherPolicies = "other"

// firstSweep is the number of policies at which the first sweep for deleted ones runs.
const firstSweep = 1024

// counters tracks the policies that have their own counters. Only policies that exist get one. Safe for concurrent use.
type counters struct {
	decisions *prometheus.CounterVec
	store     store.Reader

	mu sync.Mutex
	// known are the policies that have counters. Guarded by mu.
	known map[string]struct{}
	// sweepAt is the number of known policies at which the next sweep runs. Guarded by mu.
	sweepAt int
}

// name returns the label for the policy that a proxy of the mesh reports as the decider: a built-in decision, an
// existing policy of its mesh, or otherPolicies.
func (c *counters) name(mesh, policy string) string {
	switch policy {
	case rbac.NameDefault, rbac.NameMultipleURISANs, rbac.NameMalformedURISAN, rbac.NameHandshakeUnjudged,
		rbac.NameHandshakeUnnamed:
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

// exists reports whether the store has the policy. It uses an index: its cost does not grow with the number of
// policies.
func (c *counters) exists(kri resources.KRI) bool {
	if kri.Section != "" {
		return false
	}
	found := api.Find(c.store, kri)
	return found != nil && (found.Type == resources.TypeMeshTrafficPermission || found.Type == resources.TypeTrafficTarget)
}

// sweepLocked deletes the counters of policies that no longer exist.
func (c *counters) sweepLocked() {
	for policy := range c.known {
		if kri, err := resources.ParseKRI(policy); err != nil || !c.exists(kri) {
			delete(c.known, policy)
			c.decisions.DeletePartialMatch(prometheus.Labels{"policy": policy})
		}
	}
	c.sweepAt = max(firstSweep, 2*len(c.known))
}
