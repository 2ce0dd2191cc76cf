package xds

import (
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// issueRetry is the wait after an identity could not be issued.
const issueRetry = 5 * time.Second

// setDataplane applies a new or changed Dataplane, and the names of its secrets.
func (p *proxy) setDataplane(dp *resources.Resource, names secretNames) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dataplane = dp
	if names.identity != p.names.identity {
		p.names, p.before, p.secret = names, p.secret, nil
	}
	if names.spire {
		p.svid = nil
	}
}

// asks reports whether the names include the proxy's identity.
func (p *proxy) asks(names map[string]struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, asked := names[p.names.identity]
	return asked
}

// names returns the current names of a Dataplane's secrets, or p's own if the Dataplane's identity is unknown.
func (x *Proxies) names(p *proxy, dp *resources.Resource) secretNames {
	who, _, err := x.cfg.Authorities.Current(dp)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.names
	}
	return namesOf(dp.Key, &who)
}

// outdated reports whether the issued identity differs from the Dataplane's current one, or its authority no longer
// signs.
func (x *Proxies) outdated(p *proxy) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.svid == nil || p.dataplane == nil {
		return false
	}
	who, authority, err := x.cfg.Authorities.Current(p.dataplane)
	return err != nil || who.ID != p.svid.ID || authority != p.svid.Authority
}

// dropIdentity drops the identity of a deleted Dataplane. It does not notify the proxy: the certificate expires by
// itself.
func (p *proxy) dropIdentity() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dataplane, p.svid, p.secret, p.before = nil, nil, nil, nil
}

// ensureIdentity issues the proxy's first identity when a stream asks for it.
func (x *Proxies) ensureIdentity(p *proxy) {
	p.mu.Lock()
	has := p.dataplane == nil || p.names.spire || p.secret != nil || x.cfg.Now().Before(p.retryAt)
	p.mu.Unlock()
	if !has {
		x.aside.do(func() { x.issue(p) })
	}
}

// workInIdentitiesLocked applies a change of authorities or MeshIdentities. It rebuilds proxies whose SPIFFE ID
// changed, and plans the renewal of outdated identities, so that authorities that no longer sign can be retired. The
// renewals' goroutine renews them, one by one.
func (x *Proxies) workInIdentitiesLocked(m *mesh) {
	now := x.cfg.Now()
	for p := range m.proxies {
		switch {
		case p.target != nil && x.names(p, p.target.dataplane) != p.target.secrets:
			x.network.mark(p, allScope)
		case x.outdated(p):
			x.renewals.plan(p, now, now)
		}
	}
	x.network.trustChanged(m.name) // the SPIFFE IDs of services follow too
}

// renew issues the next identity of a proxy that is still connected.
func (x *Proxies) renew(p *proxy) {
	_ = x.cfg.Panics.Do(serving, func() error { // the guard reports it
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.proxies[p.id()] == p {
			x.renewLocked(p)
		}
		return nil
	})
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

// issue replaces the proxy's identity, the first time with the one that was kept, and plans the next renewal. If it
// fails, the old one stays and issue is retried.
func (x *Proxies) issue(p *proxy) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dataplane == nil || p.names.spire {
		return false
	}
	svid, resumed, err := x.obtainLocked(p)
	var secret *resource
	if err == nil {
		secret, err = newIdentity(p.names.identity, svid)
	}
	if err != nil {
		x.cfg.Log.Error("cannot issue the proxy's identity; trying again", "mesh", p.key.Mesh, "name", p.key.Name,
			"error", err)
		p.record.setProblem(problemIdentity, err.Error())
		x.insights.mark(p.record, soon)
		now := x.cfg.Now()
		p.retryAt = now.Add(issueRetry)
		x.renewals.plan(p, p.retryAt, now)
		return false
	}
	p.svid, p.secret = svid, secret
	p.record.setProblem(problemIdentity, "")
	p.record.issued(svid, resumed)
	x.insights.mark(p.record, soon)
	x.renewals.plan(p, svid.RenewAt, svid.Issued())
	return true
}
