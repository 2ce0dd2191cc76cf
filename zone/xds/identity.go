package xds

import (
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// issueRetry is how long a failed issue of an identity waits.
const issueRetry = 5 * time.Second

// setDataplane takes a Dataplane that appeared or changed, and reports whether an identity was handed out that is no longer
// the Dataplane's.
func (p *proxy) setDataplane(dp *resources.Resource) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.dataplane
	p.dataplane = dp
	return p.svid != nil && (old == nil || identityLabels(old) != identityLabels(dp))
}

// identityLabels are what a SPIFFE ID is made from.
func identityLabels(dp *resources.Resource) [3]string {
	return [3]string{dp.HomeNamespace(), dp.Labels[resources.LabelServiceAccount], dp.Labels[resources.LabelWorkload]}
}

// dropIdentity forgets the identity of a Dataplane that was deleted; the proxy is not told, its certificate ends by itself.
func (p *proxy) dropIdentity() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dataplane, p.svid, p.secret = nil, nil, nil
}

// ensureIdentity issues the proxy's first identity, when somebody asks for it.
func (x *Proxies) ensureIdentity(p *proxy) {
	p.mu.Lock()
	has := p.dataplane == nil || p.secret != nil || x.cfg.Now().Before(p.retryAt)
	p.mu.Unlock()
	if !has {
		x.issue(p)
	}
}

// workInAuthoritiesLocked renews the identities that another authority signed than the one that signs now, so that it can be
// retired. The renewals' own goroutine does it, one by one.
func (x *Proxies) workInAuthoritiesLocked(m *mesh) {
	signing, err := x.cfg.Authorities.For(m.name)
	if err != nil {
		return // proxies keep what they have, and issuing says why
	}
	now := x.cfg.Now()
	for p := range m.proxiesAt[hook{allHook, ""}] {
		p.mu.Lock()
		stale := p.svid != nil && p.svid.Authority != signing.ID()
		p.mu.Unlock()
		if stale {
			x.renewals.plan(p, now)
		}
	}
}

// renew issues the next identity of a proxy that is still connected.
func (x *Proxies) renew(p *proxy) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.proxies[p.id()] == p {
		x.renewLocked(p)
	}
}

// renewLocked issues the next identity and wakes the streams that asked for it.
func (x *Proxies) renewLocked(p *proxy) {
	if !x.issue(p) {
		return
	}
	for s := range p.sessions {
		s.wake(kindSecret)
	}
}

// issue replaces the proxy's identity and plans the next renewal. When it fails, the old one stays and it is tried again.
func (x *Proxies) issue(p *proxy) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dataplane == nil {
		return false
	}
	svid, err := x.cfg.Authorities.Issue(p.dataplane)
	var secret *resource
	if err == nil {
		secret, err = newIdentity(p.secrets.identity, svid)
	}
	if err != nil {
		x.cfg.Log.Error("cannot issue the proxy's identity; trying again", "mesh", p.key.Mesh, "name", p.key.Name, "error", err)
		p.record.setProblem(problemIdentity, err.Error())
		x.insights.mark(p.record, soon)
		p.retryAt = x.cfg.Now().Add(issueRetry)
		x.renewals.plan(p, p.retryAt)
		return false
	}
	p.svid, p.secret = svid, secret
	p.record.setProblem(problemIdentity, "")
	p.record.issued(svid.Leaf.NotAfter, x.cfg.Now())
	x.insights.mark(p.record, soon)
	x.renewals.plan(p, svid.RenewAt)
	x.metrics.issued.Inc()
	return true
}
