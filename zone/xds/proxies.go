package xds

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/holdings"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Config is what Proxies are made of.
type Config struct {
	// Store is followed; nothing is written to it.
	Store store.Reader
	// Status takes the DataplaneInsights.
	Status store.Store
	// Home is the zone.
	Home resources.Home
	// Authorities issue the proxies' identities.
	Authorities *identity.Authorities
	// RBACForm is how permissions are written for Envoy; rbac.Auto when empty.
	RBACForm rbac.Form
	// AccessLogs are where proxies log what their inbounds judge.
	AccessLogs []accesslog.Sink
	// Holdings keep what proxies are given for the next start; nil for nothing.
	Holdings *holdings.Book
	// Sources reads what MeshExternalServices refer to; nil finds none of it.
	Sources SourceFunc
	// Own tells this server's ports on loopback; nil knows none. It must not change once Run runs.
	Own OwnFunc
	// Instance names this process in DataplaneInsights.
	Instance string
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Log is slog.Default when nil.
	Log *slog.Logger
	// Registerer takes the metrics; none are registered when nil.
	Registerer prometheus.Registerer
	// Tracer gets a span for each response with a traced change, until the proxy's answer; nil for none.
	Tracer trace.Tracer
	// Panics catches what would end the process on behalf of one proxy; nil lets it.
	Panics *panics.Guard
}

// Proxies are the connected proxies of a zone and what each of them should have.
type Proxies struct {
	cfg      Config
	insights *insights
	renewals *renewals
	metrics  *metrics
	// streams counts those that were opened.
	streams atomic.Uint32

	mu      sync.Mutex
	since   uint64             // guarded by mu: the revision up to which commits were worked in
	proxies map[proxyID]*proxy // guarded by mu
	meshes  map[string]*mesh   // guarded by mu
	network *network           // guarded by mu
	// accesses are those that a Dataplane's proxy was told last. They outlive its streams: who loses access while the proxy
	// is away loses its connections too, and nobody does because it comes back. Guarded by mu.
	accesses map[resources.Key]accesses
	// awaited are the proxies that were here before the start and have not come back, until awaitUntil. Guarded by mu.
	awaited    map[proxyID]struct{}
	awaitUntil time.Time
	// presence says whose endpoints callers are to avoid. Guarded by mu.
	presence *presence
	// stale are the proxies whose permissions are to be built anew, each with why. Guarded by mu.
	stale map[*proxy]*store.Cause
	// cause is that of the commits that are being worked in; nil outside of that. Guarded by mu.
	cause *store.Cause
}

// New returns Proxies without a proxy. Run must run for them to notice changes.
func New(cfg Config) *Proxies {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	here := newPresence()
	p := &Proxies{
		presence: here,
		cfg:      cfg, metrics: newMetrics(cfg.Registerer),
		insights: newInsights(&cfg), proxies: map[proxyID]*proxy{}, meshes: map[string]*mesh{}, accesses: map[resources.Key]accesses{}, stale: map[*proxy]*store.Cause{},
		network: newNetwork(cfg.Store, cfg.Home, cfg.Authorities.Assignments, here),
	}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(cfg.Panics.Collector(serving, byState{p}))
	}
	p.renewals = newRenewals(cfg.Now, p.renew)
	p.since = cfg.Store.Snapshot().Revision()
	p.retainKept()
	p.await()
	return p
}

// attach makes session one of the streams of a proxy, and returns that proxy; ok is false when it has too many already.
func (x *Proxies) attach(id proxyID, s *session) (p *proxy, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p = x.proxies[id]; p == nil {
		p = x.addLocked(id, s.admin)
	}
	if p.full() {
		return p, false
	}
	p.sessions[s] = struct{}{}
	delete(x.awaited, id)
	delete(x.presence.leaving, id.Key)
	return p, true
}

func (x *Proxies) addLocked(id proxyID, admin bool) *proxy {
	key := id.Key
	snap := x.cfg.Store.Snapshot()
	m := x.meshes[key.Mesh]
	if m == nil {
		m = x.loadMeshLocked(key.Mesh, snap)
	}
	p := &proxy{
		key: key, proxyless: id.proxyless, admin: admin, mesh: m, names: secretsOf(key, &identity.Assigned{}), since: snap.Revision(), sessions: map[*session]struct{}{},
		record: x.insights.open(key),
	}
	x.proxies[id] = p
	x.metrics.proxies.Inc()
	m.proxies[p] = struct{}{}
	x.setLocked(p, snap.Get(key))
	return p
}

func (x *Proxies) loadMeshLocked(name string, snap store.Snapshot) *mesh {
	m := newMesh(name)
	m.since = snap.Revision()
	x.meshes[name] = m
	if name != "" { // ingresses are of no mesh
		x.loadPoliciesLocked(m, snap)
		x.setTrustLocked(m, snap)
	}
	return m
}

func (x *Proxies) loadPoliciesLocked(m *mesh, snap store.Snapshot) {
	for r := range snap.List(store.Query{Type: resources.TypeMeshTrafficPermission, Mesh: m.name}) {
		m.received.Add(matching.NewPolicy(r, x.cfg.Home.SystemNamespace))
	}
	for i := range receivedTypes {
		for r := range snap.List(store.Query{Type: receivedTypes[i].Type, Mesh: m.name}) {
			if policy := matching.NewPolicy(r, x.cfg.Home.SystemNamespace); policy.Receives() {
				m.received.Add(policy)
			}
		}
	}
	x.loadTrafficLocked(m, snap)
	for _, t := range append([]resources.Type{resources.TypeMeshTimeout, resources.TypeMeshCircuitBreaker}, wholeTypes...) {
		for r := range snap.List(store.Query{Type: t, Mesh: m.name}) {
			if !isWhole(r) {
				continue
			}
			m.whole.Add(matching.NewPolicy(r, x.cfg.Home.SystemNamespace))
		}
	}
	for _, t := range confTypes {
		for r := range snap.List(store.Query{Type: t, Mesh: m.name}) {
			m.confs.Add(matching.NewPolicy(r, x.cfg.Home.SystemNamespace))
		}
	}
}

// detach ends a stream of a proxy. Nothing is kept of a proxy without streams.
func (x *Proxies) detach(p *proxy, s *session) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(p.sessions, s)
	if len(p.sessions) > 0 {
		return
	}
	delete(x.proxies, p.id())
	x.leftLocked(p)
	delete(x.presence.retiring, p)
	x.metrics.proxies.Dec()
	x.renewals.cancel(p)
	x.insights.close(p.record)
	if p.target != nil {
		p.mesh.removeProxy(p)
	}
	x.network.drop(p)
	delete(p.mesh.proxies, p)
	if len(p.mesh.proxies) == 0 {
		delete(x.meshes, p.mesh.name)
	}
}

// Run follows the store's changes, renews identities and writes insights until ctx ends; it then returns nil.
func (x *Proxies) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { x.renewals.run(ctx) })
	wg.Go(func() { x.insights.run(ctx) })
	wg.Go(func() { x.followPresence(ctx) })
	defer wg.Wait()
	for {
		_, next := x.cfg.Store.Changed()
		x.catchUp()
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
	}
}

// commitsAtOnce bounds how many commits are worked in before proxies that come or go have their turn.
const commitsAtOnce = 256

// catchUp works in all commits there are.
func (x *Proxies) catchUp() {
	for x.catchUpSome() {
	}
}

// catchUpSome works in the next commits, and reports whether there are more.
func (x *Proxies) catchUpSome() (more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	commits, ok := x.cfg.Store.Changes(x.since)
	if !ok {
		x.reloadLocked()
		return false
	}
	more = len(commits) > commitsAtOnce
	all := &store.Cause{}
	for _, commit := range commits[:min(len(commits), commitsAtOnce)] {
		cause := commit.Cause // a copy: who waits for a proxy with it does not hold the commit
		x.cause = &cause
		all.Join(&cause)
		for i := range commit.Changes {
			x.workInLocked(commit.Revision, &commit.Changes[i])
		}
		x.since = commit.Revision
	}
	x.cause = all
	x.settleLocked()
	x.cause = nil
	return more
}
