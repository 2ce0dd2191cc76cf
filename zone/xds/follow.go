package xds

import (
	"maps"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// workInLocked applies one change to the proxies that it concerns, and to no other.
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
		x.workInGatewayLocked(key)
	case resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute:
		x.network.forget(key)
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

// workInBeliefLocked applies a change of who proxies are, or of whom they trust.
func (x *Proxies) workInBeliefLocked(revision uint64, key resources.Key) {
	m := x.meshes[key.Mesh]
	isNew := m != nil && m.since < revision
	switch key.Type {
	case resources.TypeSecret:
		if named, ok := secrets.NamedOf(key); ok {
			x.workInSourceLocked(named.Mesh)
		}
		if meshDomain, ok := identity.MeshDomainOf(key); ok && x.meshes[identity.MeshOfDomain(meshDomain)] != nil {
			x.workInIdentitiesLocked(x.meshes[identity.MeshOfDomain(meshDomain)])
		}
	case resources.TypeMeshIdentity:
		if m != nil {
			x.workInIdentitiesLocked(m)
		}
		if isNew {
			x.workInTrustLocked(m) // it may name the trust domains of a zone
			x.workInTrafficLocked(m)
		}
	case resources.TypeMeshTrust:
		if isNew {
			x.workInTrustLocked(m)
			x.workInTrafficLocked(m)
		}
	}
}

func (x *Proxies) workInDataplaneLocked(revision uint64, key resources.Key, dp *resources.Resource) {
	if dp == nil {
		x.insights.forget(key)
		delete(x.accesses, key)
	}
	for _, proxyless := range []bool{false, true} {
		p := x.proxies[proxyID{key, proxyless}]
		switch {
		case p == nil || revision <= p.since:
		case dp == nil:
			x.removeDataplaneLocked(p)
		default:
			x.setDataplaneLocked(p, dp)
		}
	}
	if dp == nil { // last: until here its proxies may have been issued an identity
		x.dropKeptLocked(key)
	}
}

// setDataplaneLocked rebuilds everything for a Dataplane that appeared or changed.
func (x *Proxies) setDataplaneLocked(p *proxy, dp *resources.Resource) {
	for s := range p.sessions {
		s.pass.recheck(p.key, dp, s.endStream)
	}
	p.record.setDataplane(true)
	x.insights.mark(p.record, soon)
	t, err := built(x, func() (*target, error) {
		return newTarget(dp, neighbours(x.cfg.Store.Snapshot(), dp), p.proxyless)
	})
	var next *state
	if err == nil {
		x.serveGatewayLocked(t)
		err = x.cfg.Own.checkServices(t)
	}
	if err == nil {
		t.measured, t.dns, t.logFiles, t.own, t.shared = p.measured, p.dns, &p.logFiles, x.cfg.Own, &x.shared
		t.adminPin = x.cfg.AdminPin
		t.form, t.secrets = x.cfg.RBACForm, x.names(p, dp)
		t.patches = p.mesh.patches
		t.closedMesh = !passesUnasked(x.cfg.Store.Snapshot(), dp.Mesh)
		err = t.setLogs(x.cfg.AccessLogs)
		t.setBare()
	}
	if err == nil {
		err = t.observe(p.mesh.whole.Candidates(t.match))
	}
	if err == nil {
		next, err = built(x, func() (*state, error) {
			return build(t, p.mesh.received.Candidates(t.match), p.state.Load(), x.accessesLocked(p.key))
		})
	}
	if err == nil && !t.proxyless {
		x.shared.alike.share(next)
	}
	if err == nil {
		next, err = x.sendLocked(p, t, next)
	}
	if err != nil {
		p.unbuilt.dataplane = dp
		x.failed(p, partAll, err)
		return
	}
	if p.target != nil {
		p.mesh.removeProxy(p)
	}
	p.target = t
	p.unbuilt.built(partAll)
	delete(p.mesh.unready, p)
	p.mesh.addProxy(p)
	p.setDataplane(dp, t.secrets)
	if x.outdated(p) { // first: what follows refers to it
		x.renewLocked(p)
	}
	x.publishLocked(p, next)
}

// observeLocked applies the policies of wholeTypes anew, and rebuilds what follows.
func (x *Proxies) observeLocked(p *proxy) {
	t := p.target.again()
	err := t.observe(p.mesh.whole.Candidates(t.match))
	var next *state
	if err == nil {
		next, err = built(x, func() (*state, error) {
			return build(t, p.mesh.received.Candidates(t.match), p.state.Load(), x.accessesLocked(p.key))
		})
	}
	if err == nil {
		next, err = x.sendLocked(p, t, next)
	}
	if err != nil {
		p.unbuilt.dataplane = t.dataplane
		x.failed(p, partAll, err)
		return
	}
	p.target = t
	p.unbuilt.built(partAll)
	x.publishLocked(p, next)
}

// removeDataplaneLocked removes listeners and clusters: the user deleted the Dataplane.
func (x *Proxies) removeDataplaneLocked(p *proxy) {
	if p.target != nil {
		p.mesh.removeProxy(p)
		p.target = nil
	}
	p.ingress = nil
	p.unbuilt.built(partAll)
	delete(p.mesh.unready, p)
	delete(x.presence.retiring, p)
	p.dropIdentity()
	x.renewals.cancel(p)
	x.network.drop(p)
	x.cfg.Log.Info("dataplane deleted: removing its listeners", "mesh", p.key.Mesh, "name", p.key.Name)
	if p.state.Load() != nil {
		x.publishLocked(p, &state{})
	}
}

// workInReceivedLocked applies a change of a policy on what HTTP inbounds receive.
func (x *Proxies) workInReceivedLocked(revision uint64, key resources.Key, r *resources.Resource) {
	if m := x.meshes[key.Mesh]; m != nil && m.since < revision && isReceived(key.Type) {
		x.workInPolicyLocked(m, key, r)
	}
}

func (x *Proxies) workInPolicyLocked(m *mesh, key resources.Key, r *resources.Resource) {
	affected := map[*proxy]struct{}{}
	m.remove(m.received, key, affected)
	if r != nil {
		policy := matching.NewPolicy(r, x.cfg.Home.SystemNamespace)
		if !isReceived(key.Type) || policy.Receives() {
			m.add(m.received, policy, affected)
		}
	}
	for p := range affected {
		x.staleLocked(p)
	}
}

// staleLocked marks the proxy's permissions for one rebuild after the current commits, however many of them concern it.
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
	if len(p.target.egresses) > 0 && next.accesses.replaced(old.accesses) { // its listeners are with what it sends
		x.network.mark(p, onlySending)
	}
}

// workInTrustLocked rebuilds the mesh's validation secret and wakes the streams that ask for it.
func (x *Proxies) workInTrustLocked(m *mesh) {
	if !x.setTrustLocked(m, x.cfg.Store.Snapshot()) {
		return
	}
	x.network.trustChanged(m.name)
	for p := range m.proxies {
		for s := range p.sessions {
			s.expect(kindSecret, x.cause)
			s.wake(kindSecret)
		}
	}
}

// setTrustLocked reports whether the secret changed. The snapshot may be ahead of the current commit; the later commits
// then change nothing.
func (x *Proxies) setTrustLocked(m *mesh, snap store.Snapshot) bool {
	bundles := identity.BundlesOf(snap, m.name, x.cfg.Home)
	for _, r := range bundles.Refused {
		x.cfg.Log.Warn("trust refused", "mesh", m.name, "type", r.Trust.Type, "name", r.Trust.Name, "zone",
			r.Trust.Zone(), "reason", r.Reason)
	}
	next, err := newTrust(trustName(m.name), bundles)
	if err != nil {
		x.cfg.Log.Error("cannot send the mesh's trust bundles; proxies keep the previous ones", "mesh", m.name, "error", err)
		return false
	}
	old := m.trust.Load()
	if next == nil || old != nil && old.version == next.version {
		return false
	}
	m.trust.Store(next)
	return true
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

// reloadLocked compares everything: the changelog no longer reaches back to the last revision applied.
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

// setLocked applies a Dataplane to its proxy; r is nil if there is none yet.
func (x *Proxies) setLocked(p *proxy, r *resources.Resource) {
	switch {
	case r == nil:
	case r.Type == resources.TypeZoneIngress:
		x.setIngressLocked(p, r)
	default:
		x.setDataplaneLocked(p, r)
	}
}
