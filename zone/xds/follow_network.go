package xds

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// confTypes are the policies that affect outgoing traffic.
var confTypes = []resources.Type{
	resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute,
	resources.TypeMeshTimeout, resources.TypeMeshRetry, resources.TypeMeshCircuitBreaker,
	resources.TypeMeshAccessLog, resources.TypeMeshLoadBalancingStrategy, resources.TypeMeshHealthCheck,
}

// trusted returns the trust of a mesh; nil if the mesh trusts nobody yet, or none of its proxies is connected.
func (x *Proxies) trusted(mesh string) *trust {
	if m := x.meshes[mesh]; m != nil {
		return m.trust.Load()
	}
	return nil
}

// sendLocked returns the resources of the proxy's outbounds; nil if it has none. clients are those of its inbounds.
func (x *Proxies) sendLocked(p *proxy, t *target, clients accesses) (*sending, error) {
	if !t.sends() && len(t.unserved) == 0 {
		x.network.drop(p)
		p.record.setProblem(problemOutbounds, "")
		p.record.setProblem(problemGateway, "")
		return nil, nil
	}
	sender := &sender{target: t, secrets: t.secrets, sources: x.cfg.Sources, own: x.cfg.Own, asked: p.mesh.asked,
		dests: x.network.in(p.key.Mesh), policies: p.mesh.confs.Candidates(t.match), accesses: clients}
	if old := p.state.Load(); old != nil {
		sender.last = old.sending
	}
	if sender.egress = len(t.egresses) > 0; !sender.egress && AsksForEgress(x.cfg.Store.Snapshot().Get(meshKey(p.key.Mesh))) {
		sender.byEgress, sender.gone = true, len(x.network.egressEndpoints(p.key.Mesh)) == 0
	}
	if t.listensOnNames() {
		sender.names = x.network.names(p.key.Mesh)
	}
	sender.tagged = x.network.taggedOf(t)
	var backends []*backend
	out, err := built(x, func() (out *sending, err error) {
		out, backends, err = sender.build()
		return out, err
	})
	if err != nil {
		for name := range sender.tagged {
			x.network.forgetMeaning(name)
		}
		return nil, err
	}
	x.network.use(p, backends, x.trusted)
	p.reach(out)
	if p.showProblems(out) {
		x.insights.mark(p.record, soon)
	}
	return out, nil
}

// resendLocked rebuilds the resources of the proxy's outbounds, and nothing else.
func (x *Proxies) resendLocked(p *proxy) {
	old := p.state.Load()
	out, err := x.sendLocked(p, p.target, old.accesses)
	if err != nil {
		x.failed(p, partSends, err)
		return
	}
	p.unbuilt.built(partSends)
	x.publishLocked(p, old.with(out, old))
}

// reach fills in the current endpoints and identities of the backends.
func (p *proxy) reach(out *sending) {
	var endpoints, identities []*resource
	for _, port := range p.ports {
		endpoints = append(endpoints, port.endpoints)
		if port.identities != nil {
			identities = append(identities, port.identities)
		}
	}
	out.sets[kindEndpoint], out.sets[kindSecret] = newSet(endpoints...),
		newSet(append(identities, out.certificates...)...)
}

// sendsSame reports whether what the proxy sends is the same for a target that differs only in the policies of wholeTypes.
// The log files of its outbounds then count as named.
func (p *proxy) sendsSame(t *target) bool {
	old := p.state.Load()
	if t.proxyless || t.gateway != nil || len(t.egresses) > 0 || p.unbuilt != (unbuilt{}) || old == nil || old.sending == nil ||
		old.sending.plan.private || !t.observed.sendsLike(&p.target.observed) {
		return false
	}
	files := [][]string{old.sending.plan.files}
	for _, l := range old.sending.listened {
		files = append(files, l.files)
	}
	for _, file := range slices.Concat(files...) {
		if t.logFiles.use(file) != "" {
			return false
		}
	}
	return true
}

// sends reports whether a proxy has listeners for outgoing traffic, or leads out of the mesh.
func (t *target) sends() bool {
	return len(t.outbounds) > 0 || t.gateway != nil || t.listensOnNames() || len(t.egresses) > 0
}

func (p *proxy) sends() bool {
	return p.target != nil && p.target.sends()
}

// workInServiceLocked marks the proxies that a service affects: those that send to it, and those whose inbounds take
// their protocol from it.
func (x *Proxies) workInServiceLocked(c *store.Change) {
	key := c.Key()
	x.network.forget(key)
	x.network.serviceChanged(c.Old, c.New)
	x.serviceForIngressesLocked()
	m := x.meshes[key.Mesh]
	if m == nil {
		return
	}
	var both []*referent
	for _, r := range []*resources.Resource{c.Old, c.New} {
		if r != nil {
			both = append(both, referentOf(r))
		}
	}
	for _, r := range both {
		for p := range m.servedBy(r.Resource) {
			x.network.mark(p, allScope)
		}
		for p := range m.followers(r) {
			x.network.mark(p, sendingScope)
		}
	}
}

// workInInitialPoliciesLocked marks the sending proxies of a mesh whose initial policies were created.
func (x *Proxies) workInInitialPoliciesLocked(key resources.Key, r *resources.Resource) {
	m, asked := x.meshes[key.Name], resources.HasInitialPolicies(r)
	if m == nil || m.asked == asked {
		return
	}
	m.asked = asked
	for p := range m.proxies {
		if p.sends() {
			x.network.mark(p, sendingScope)
		}
	}
}

// workInGrantLocked marks the proxies whose requests a producer's route redirects, and the ingresses, which serve the
// subsets that it names.
func (x *Proxies) workInGrantLocked(key resources.Key) {
	x.network.forget(key)
	x.serviceForIngressesLocked()
	m := x.meshes[key.Mesh]
	if m == nil {
		return
	}
	for p := range m.proxies {
		if s := p.state.Load(); s != nil && s.sending != nil && s.sending.granted {
			x.network.mark(p, sendingScope)
		}
	}
}

// workInConfLocked marks the sending proxies that a policy selects or selected.
func (x *Proxies) workInConfLocked(revision uint64, key resources.Key, r *resources.Resource) {
	m := x.meshes[key.Mesh]
	if m == nil || m.since >= revision {
		return
	}
	selected := map[*proxy]struct{}{}
	m.remove(m.confs, key, selected)
	if r != nil {
		if policy := x.readPolicy(r); policy.Sends() {
			m.add(m.confs, policy, selected)
		}
	}
	for p := range selected {
		if key.Type == resources.TypeMeshAccessLog || key.Type == resources.TypeMeshHealthCheck {
			p.logFiles.again()
		}
		if p.sends() {
			x.network.mark(p, sendingScope)
		}
	}
}

// settleLocked rebuilds what the applied commits affect, once per proxy however many commits there are.
func (x *Proxies) settleLocked() {
	x.settlePermissionsLocked()
	x.network.reconsider()
	for p, parts := range x.network.dirtyProxies {
		switch {
		case p.ingress != nil:
			x.setIngressLocked(p, p.ingress)
		case p.target != nil && (parts&allScope != 0 || p.unbuilt.dataplane != nil):
			x.setDataplaneLocked(p, p.newest())
		case p.target != nil && parts&(observedScope|gatewayScope) != 0:
			x.observeLocked(p, parts)
		case p.target != nil:
			x.resendLocked(p)
		}
	}
	clear(x.network.dirtyProxies)
	for _, m := range x.meshes {
		x.retryUnreadyLocked(m)
	}
	for p := range x.network.settle(x.trusted) {
		old := p.state.Load()
		if old == nil || old.sending == nil {
			continue
		}
		out := *old.sending
		p.reach(&out)
		x.publishLocked(p, old.with(&out, old))
	}
}

// reload drops everything that was read, because the changes are unknown.
func (n *network) reload() {
	clear(n.destinations)
	clear(n.former)
	clear(n.named)
	clear(n.gates)
	clear(n.known)
	clear(n.decoded)
	clear(n.meanings)
	n.allChanged()
}

// allChanged marks all ports as changed.
func (n *network) allChanged() {
	for _, port := range n.ports {
		n.dirtyPorts[port] = struct{}{}
		if port.tagged != nil {
			n.doubt(port)
		}
	}
}
