package xds

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// proxyID identifies a connected proxy: beside its Envoy, a Dataplane's application may be a gRPC server that asks for
// its own config.
type proxyID struct {
	resources.Key // of the Dataplane, or ZoneIngress
	proxyless     bool
}

// proxy is a connected proxy. It exists from its first stream to the end of its last.
type proxy struct {
	key resources.Key // of the Dataplane
	// proxyless means that the proxy is the application itself, a gRPC server.
	proxyless bool
	// measured describes how its metrics are available, according to its first stream.
	measured measured
	// dns is where the proxy answers DNS queries, according to its first stream; nil if it does not.
	dns    *dnsServer
	mesh   *mesh
	record *record

	// The fields down to state belong to Proxies and are guarded by its mu.
	since    uint64              // commits up to this revision are already in target
	target   *target             // nil while there is no Dataplane, or none that can be built
	ingress  *resources.Resource // set for the proxy of a ZoneIngress
	unbuilt  unbuilt             // the parts in which the config is older than the store
	ports    []*usedPort         // its destinations
	follows  []followed          // the keys under which the mesh has it
	logFiles logFiles
	// unpatchable holds the patches that the proxy refused.
	unpatchable unpatchable
	sessions    map[*session]struct{}

	// state is nil until the Dataplane exists. It is replaced under Proxies.mu and read by anyone.
	state atomic.Pointer[state]
	// listens means that the proxy has accepted everything that it asked for at least once. Set under Proxies.mu.
	listens atomic.Bool
	// asked counts the names that its streams are subscribed to.
	asked atomic.Int64

	mu        sync.Mutex
	dataplane *resources.Resource // guarded by mu: the Dataplane to issue the identity for; nil: no identity
	svid      *identity.SVID      // guarded by mu
	names     secretNames         // guarded by mu: the names of its secrets
	secret    *resource           // guarded by mu: the svid in its xDS form
	before    *resource           // guarded by mu: the secret under its former name, until the proxy no longer asks for it
	retryAt   time.Time           // guarded by mu: when issuing failed
}

func (p *proxy) id() proxyID { return proxyID{p.key, p.proxyless} }

// find returns the resources of a kind that the proxy should have now; ok is false while they are unknown.
func (p *proxy) find(k kind) (s set, ok bool) {
	if k == kindSecret {
		return p.secretSet(), true
	}
	st := p.state.Load()
	if st == nil {
		return nil, false
	}
	return st.served(k), true
}

// secretSet returns the proxy's own identity, the mesh's trust bundles and the SPIFFE IDs of the services that it sends
// to, as far as they exist. It contains nothing else: a request for another name, such as another proxy's identity,
// finds nothing.
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
