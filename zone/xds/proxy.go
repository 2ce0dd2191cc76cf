package xds

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// proxyID tells connected proxies apart: beside its Envoy, a Dataplane's application may be a gRPC server that asks for its own config.
type proxyID struct {
	resources.Key // of the Dataplane, or ZoneIngress
	proxyless     bool
}

// proxy is a connected proxy. It exists from its first stream to the end of its last.
type proxy struct {
	key resources.Key // of the Dataplane
	// proxyless: it is the application itself, a gRPC server.
	proxyless bool
	// admin: its bootstrap has AdminCluster, as its first stream says.
	admin  bool
	mesh   *mesh
	record *record

	// The fields down to state belong to Proxies and are guarded by its mu.
	since    uint64              // commits up to this revision are already in target
	target   *target             // nil while there is no Dataplane, or none that can be built
	ingress  *resources.Resource // set for the proxy of a ZoneIngress
	unbuilt  unbuilt             // what target, or what came of it, is behind in
	ports    []*usedPort         // what it sends to
	logFiles logFiles
	sessions map[*session]struct{}

	// state is nil until the Dataplane exists. It is replaced under Proxies.mu and read by anyone.
	state atomic.Pointer[state]
	// listens: it has taken in what it asked for at least once, as far as it ever will. Set under Proxies.mu.
	listens atomic.Bool
	// asked is how many names its streams are subscribed to.
	asked atomic.Int64

	mu        sync.Mutex
	dataplane *resources.Resource // guarded by mu: what the identity is issued for; nil: no identity
	svid      *identity.SVID      // guarded by mu
	names     secretNames         // guarded by mu: what its secrets are called
	secret    *resource           // guarded by mu: the svid as it is sent
	before    *resource           // guarded by mu: that of another name, until the proxy asks for it no more
	retryAt   time.Time           // guarded by mu: when issuing failed
}

func (p *proxy) id() proxyID { return proxyID{p.key, p.proxyless} }

// find returns the resources of a kind as the proxy should have them now; ok is false while nothing can be said.
func (p *proxy) find(k kind) (s set, ok bool) {
	if k == kindSecret {
		return p.secretSet(), true
	}
	st := p.state.Load()
	if st == nil {
		return nil, false
	}
	return st.sets[k], true
}

// secretSet holds the proxy's own identity, the mesh's trust and who the services may be that it sends to, as far as they exist. There
// is nothing else in it: what a proxy asks for by another name, another proxy's identity among it, is not found.
func (p *proxy) secretSet() set {
	var out []*resource
	p.mu.Lock()
	for _, secret := range []*resource{p.secret, p.before} {
		if secret != nil {
			out = append(out, secret)
		}
	}
	p.mu.Unlock()
	if trust := p.mesh.trust.Load(); trust != nil && p.state.Load() != nil {
		out = append(out, trust.resource)
	}
	if st := p.state.Load(); st != nil {
		out = append(out, st.sets[kindSecret]...)
	}
	return newSet(out...)
}
