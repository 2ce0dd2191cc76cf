package xds

import (
	"github.com/causeway-mesh/causeway/resources"
)

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
		p.mesh.serveGateway(t, x.cfg.Home.SystemNamespace)
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
	var out *sending
	if err == nil {
		out, err = x.sendLocked(p, t, next.accesses)
	}
	if err != nil {
		p.unbuilt.dataplane = dp
		x.failed(p, partAll, err)
		return
	}
	next.send(out, p.state.Load())
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

// observeLocked applies the policies of wholeTypes again, and rebuilds what depends on them. For gatewayScope, it first
// finds the MeshGateway again.
func (x *Proxies) observeLocked(p *proxy, parts scope) {
	t := p.target.again()
	if parts&gatewayScope != 0 {
		p.mesh.serveGateway(t, x.cfg.Home.SystemNamespace)
	}
	err, old := t.observe(p.mesh.whole.Candidates(t.match)), p.state.Load()
	var next *state
	if err == nil {
		next, err = built(x, func() (*state, error) {
			policies := p.mesh.received.Candidates(t.match)
			if parts&gatewayScope == 0 && p.extends(t) {
				return buildObserved(t, policies, old)
			}
			return build(t, policies, old, x.accessesLocked(p.key))
		})
	}
	out := (*sending)(nil)
	switch {
	case err != nil:
	case parts == observedScope && p.sendsSame(t):
		out = old.sending
	default:
		out, err = x.sendLocked(p, t, next.accesses)
	}
	if err != nil {
		p.unbuilt.dataplane = t.dataplane
		x.failed(p, partAll, err)
		return
	}
	next.send(out, old)
	if t.match.MeetsAlike(p.target.match) {
		p.target = t
	} else { // it serves another MeshGateway
		p.mesh.removeProxy(p)
		p.target = t
		p.mesh.addProxy(p)
	}
	p.unbuilt.built(partAll)
	x.publishLocked(p, next)
}

// removeDataplaneLocked removes listeners and clusters, because the user deleted the Dataplane.
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
