package xds

import (
	"maps"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// workInLocked applies one change to the proxies that it affects, and to no other.
func (x *Proxies) workInLocked(revision uint64, c *store.Change) {
	key := c.Key()
	switch key.Type {
	case resources.TypeDataplane:
		x.workInDataplaneLocked(revision, key, c.New)
		x.workInPresenceLocked(c)
		x.network.dataplaneChanged(c.Old, c.New)
	case resources.TypeMeshTrafficPermission:
		if m := x.meshes[key.Mesh]; m != nil && m.since < revision {
			x.workInPolicyLocked(m, key, c.New)
		}
	case resources.TypeTrafficTarget, resources.TypeHTTPRouteGroup, resources.TypeTCPRoute:
		if m := x.meshes[key.Mesh]; m != nil && m.since < revision {
			x.workInTrafficLocked(m)
		}
	case resources.TypeMeshService, resources.TypeMeshMultiZoneService, resources.TypeMeshExternalService:
		x.workInServiceLocked(c)
	case resources.TypeHostnameGenerator:
		x.workInGeneratorLocked()
	case resources.TypeMeshReferenceGrant:
		x.workInGrantLocked(key)
	case resources.TypeMeshGateway:
		x.workInGatewayLocked(revision, c)
	case resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute:
		x.network.routeChanged(c)
		x.workInConfLocked(revision, key, c.New)
		if namesSubset(c.Old) || namesSubset(c.New) {
			x.serviceForIngressesLocked()
		}
	case resources.TypeMeshTimeout, resources.TypeMeshRetry, resources.TypeMeshCircuitBreaker:
		x.workInConfLocked(revision, key, c.New)
		x.workInReceivedLocked(revision, key, c.New)
		x.workInWholeLocked(revision, key, c.New)
	case resources.TypeMeshRateLimit, resources.TypeMeshFaultInjection:
		x.workInReceivedLocked(revision, key, c.New)
	case resources.TypeMeshAccessLog:
		x.workInConfLocked(revision, key, c.New)
		x.workInWholeLocked(revision, key, c.New)
	case resources.TypeMeshLoadBalancingStrategy, resources.TypeMeshHealthCheck:
		x.workInConfLocked(revision, key, c.New)
	case resources.TypeMesh:
		x.workInMeshLocked(key)
		x.workInInitialPoliciesLocked(key, c.New)
	case resources.TypeMeshTrace, resources.TypeMeshMetric, resources.TypeMeshTLS, resources.TypeMeshPassthrough,
		resources.TypeMeshProxyPatch:
		x.workInWholeLocked(revision, key, c.New)
	case resources.TypeZoneIngress:
		x.workInIngressLocked(revision, c)
	case resources.TypeSecret, resources.TypeMeshIdentity, resources.TypeMeshTrust:
		x.workInBeliefLocked(revision, key)
	}
}

// workInReceivedLocked applies a change of a policy for inbound HTTP traffic.
func (x *Proxies) workInReceivedLocked(revision uint64, key resources.Key, r *resources.Resource) {
	if m := x.meshes[key.Mesh]; m != nil && m.since < revision && isReceived(key.Type) {
		x.workInPolicyLocked(m, key, r)
	}
}

// readPolicy reads a policy: once for all that follows it when it changes.
func (x *Proxies) readPolicy(r *resources.Resource) *matching.Policy {
	return x.cfg.LastRead.Policy(r, x.cfg.Home.SystemNamespace)
}

func (x *Proxies) workInPolicyLocked(m *mesh, key resources.Key, r *resources.Resource) {
	affected := map[*proxy]struct{}{}
	m.remove(m.received, key, affected)
	if r != nil {
		policy := x.readPolicy(r)
		if !isReceived(key.Type) || policy.Receives() {
			m.add(m.received, policy, affected)
		}
	}
	for p := range affected {
		x.staleLocked(p)
	}
}

// staleLocked marks the proxy's permissions for one rebuild after the current commits, however many affect it.
func (x *Proxies) staleLocked(p *proxy) {
	cause := x.stale[p]
	if cause == nil {
		cause = &store.Cause{}
		x.stale[p] = cause
	}
	if x.cause != nil {
		cause.Join(x.cause)
	}
}

// settlePermissionsLocked rebuilds the permissions of stale proxies.
func (x *Proxies) settlePermissionsLocked() {
	all := x.cause
	for p, cause := range x.stale {
		if p.target != nil {
			x.cause = cause
			x.rebuildPermissionsLocked(p)
		}
	}
	x.cause = all
	clear(x.stale)
}

func (x *Proxies) rebuildPermissionsLocked(p *proxy) {
	old := p.state.Load()
	next, err := built(x, func() (*state, error) {
		return buildReceived(p.target, p.mesh.received.Candidates(p.target.match), old)
	})
	if err != nil {
		x.failed(p, partReceives, err)
		return
	}
	p.unbuilt.built(partReceives)
	x.publishLocked(p, next)
	if len(p.target.egresses) > 0 && next.accesses.replaced(old.accesses) { // its listeners belong to what it sends
		x.network.mark(p, sendingScope)
	}
}

// publishLocked makes next the proxy's state, and wakes its streams for the subscribed kinds that differ.
func (x *Proxies) publishLocked(p *proxy, next *state) {
	x.metrics.builds.Inc()
	next.serve(x, p)
	p.record.setProblem(p.configProblem(), p.unbuilt.String())
	if limits, observed := p.showLimits(next), p.showObserved(next); limits || observed {
		x.insights.mark(p.record, soon)
	}
	old := p.state.Load()
	p.state.Store(next)
	p.mesh.follow(p, next.sending)
	if len(next.accesses) > 0 {
		x.keepAccessesLocked(p.key, next.accesses)
	}
	kinds := next.changed(old)
	if old == nil {
		kinds = append(kinds, kindSecret) // the trust bundle waited for the Dataplane too
	}
	for s := range p.sessions {
		for _, k := range kinds {
			s.expect(k, x.cause)
		}
		for _, k := range kinds {
			s.wake(k)
		}
	}
}

// reloadLocked compares everything, because the changelog no longer reaches back to the last applied revision.
func (x *Proxies) reloadLocked() {
	snap := x.cfg.Store.Snapshot()
	x.since = snap.Revision()
	for _, m := range x.meshes {
		m.since = snap.Revision()
		if m.name == "" {
			continue
		}
		m.received.Clear()
		m.confs.Clear()
		m.whole.Clear()
		m.patches = newPatchReader()
		x.loadPoliciesLocked(m, snap)
		x.workInTrustLocked(m)
		x.workInIdentitiesLocked(m)
	}
	x.network.reload()
	x.retainKept()
	x.retainPresenceLocked(snap)
	maps.DeleteFunc(x.accesses, func(key resources.Key, _ accesses) bool { return snap.Get(key) == nil })
	for id, p := range x.proxies {
		p.since = snap.Revision()
		if r := snap.Get(id.Key); r != nil {
			x.setLocked(p, r)
		} else if p.state.Load() != nil {
			x.removeDataplaneLocked(p)
		}
	}
	x.settleLocked()
}
