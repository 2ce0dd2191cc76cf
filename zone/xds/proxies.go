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
	"github.com/causeway-mesh/causeway/zone/checkpoint"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Config configures Proxies.
type Config struct {
	// Store is the source of resources. Nothing is written to it.
	Store store.Reader
	// Status stores the DataplaneInsights.
	Status store.Store
	// Home is the zone.
	Home resources.Home
	// Authorities issue the proxies' identities.
	Authorities *identity.Authorities
	// RBACForm is the form in which Envoy gets permissions; rbac.Auto if empty.
	RBACForm rbac.Form
	// AccessLogs are the sinks of the inbounds' access logs.
	AccessLogs []accesslog.Sink
	// Checkpoint keeps what proxies are issued, for the next start; nil keeps nothing.
	Checkpoint *checkpoint.Cache
	// LastRead reads policies. Who else reads a policy that changed may share it; nil if nobody does.
	LastRead *matching.LastRead
	// Sources reads what MeshExternalServices refer to. If nil, no source can be read.
	Sources SourceFunc
	// Own reports this server's ports on loopback; nil means that it has none. It must not change once Run runs.
	Own OwnFunc
	// AdminPin is the SHA-256, in base64, of the public key that may read the admin interface of an Envoy whose
	// Dataplane has networking.admin.port. If empty, no Envoy exposes it.
	AdminPin string
	// Instance names this process in DataplaneInsights.
	Instance string
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Log is slog.Default when nil.
	Log *slog.Logger
	// Registerer takes the metrics; none are registered when nil.
	Registerer prometheus.Registerer
	// Tracer gets a span for each response that carries a traced change, until the proxy answers; nil for none.
	Tracer trace.Tracer
	// Panics recovers from panics in work for one proxy; nil lets them end the process.
	Panics *panics.Guard
}

// Proxies holds the connected proxies of a zone and the configuration that each should have.
type Proxies struct {
	cfg      Config
	insights *insights
	renewals *renewals
	metrics  *metrics
	// aside runs the work of streams that needs a deep stack. Callers do not hold mu.
	aside  aside
	shared shared
	// streams counts the streams opened since the start.
	streams atomic.Uint32

	mu      sync.Mutex
	since   uint64             // guarded by mu: commits up to this revision are applied
	proxies map[proxyID]*proxy // guarded by mu
	meshes  map[string]*mesh   // guarded by mu
	network *network           // guarded by mu
	// accesses holds the accesses last sent to each Dataplane's proxy. They outlive its streams. A client that loses
	// access while the proxy is away loses its connections too, and no client loses them because the proxy returns.
	// Guarded by mu.
	accesses map[resources.Key]accesses
	// awaited holds the proxies that were connected before the start and have not reconnected, until awaitUntil.
	// Guarded by mu.
	awaited    map[proxyID]struct{}
	awaitUntil time.Time
	// presence tracks the Dataplanes that clients should avoid. Guarded by mu.
	presence *presence
	// stale holds the proxies whose permissions must be rebuilt, with the cause. Guarded by mu.
	stale map[*proxy]*store.Cause
	// cause is the cause of the commits being applied; nil otherwise. Guarded by mu.
	cause *store.Cause
}

// New returns Proxies without a proxy. They notice changes only while Run runs.
func New(cfg Config) *Proxies {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.LastRead == nil {
		cfg.LastRead = &matching.LastRead{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	here := newPresence()
	p := &Proxies{
		presence: here,
		cfg:      cfg, metrics: newMetrics(cfg.Registerer),
		insights: newInsights(&cfg), proxies: map[proxyID]*proxy{}, meshes: map[string]*mesh{},
		accesses: map[resources.Key]accesses{}, stale: map[*proxy]*store.Cause{},
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

// attach adds session to the streams of a proxy, and returns that proxy; ok is false if it already has too many.
func (x *Proxies) attach(id proxyID, s *session) (p *proxy, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p = x.proxies[id]; p == nil {
		p = x.addLocked(id, s)
	}
	if p.full() {
		return p, false
	}
	p.sessions[s] = struct{}{}
	delete(x.awaited, id)
	delete(x.presence.leaving, id.Key)
	return p, true
}

func (x *Proxies) addLocked(id proxyID, s *session) *proxy {
	key := id.Key
	snap := x.cfg.Store.Snapshot()
	m := x.meshes[key.Mesh]
	if m == nil {
		m = x.loadMeshLocked(key.Mesh, snap)
	}
	p := &proxy{
		key: key, proxyless: id.proxyless, measured: s.measured, dns: s.dns, mesh: m, names: secretsOf(key, &identity.Assigned{}),
		since: snap.Revision(), sessions: map[*session]struct{}{},
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
	if name != "" { // ingresses belong to no mesh
		x.loadPoliciesLocked(m, snap)
		x.setTrustLocked(m, snap)
	}
	return m
}

func (x *Proxies) loadPoliciesLocked(m *mesh, snap store.Snapshot) {
	m.gateways = matching.NewGateways(snap.List(store.Query{Type: resources.TypeMeshGateway, Mesh: m.name}))
	m.asked = resources.HasInitialPolicies(snap.Get(resources.Key{Type: resources.TypeMesh, Name: m.name}))
	for r := range snap.List(store.Query{Type: resources.TypeMeshTrafficPermission, Mesh: m.name}) {
		m.received.Add(x.readPolicy(r))
	}
	for i := range receivedTypes {
		for r := range snap.List(store.Query{Type: receivedTypes[i].Type, Mesh: m.name}) {
			if policy := x.readPolicy(r); policy.Receives() {
				m.received.Add(policy)
			}
		}
	}
	x.loadTrafficLocked(m, snap)
	for _, t := range append([]resources.Type{resources.TypeMeshTimeout, resources.TypeMeshCircuitBreaker},
		wholeTypes...) {
		for r := range snap.List(store.Query{Type: t, Mesh: m.name}) {
			if isWhole(r) {
				m.whole.Add(x.readPolicy(r))
			}
		}
	}
	for _, t := range confTypes {
		for r := range snap.List(store.Query{Type: t, Mesh: m.name}) {
			if policy := x.readPolicy(r); policy.Sends() {
				m.confs.Add(policy)
			}
		}
	}
}

// detach removes a stream from a proxy. A proxy without streams is dropped.
func (x *Proxies) detach(p *proxy, s *session) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(p.sessions, s)
	if len(p.sessions) > 0 {
		return
	}
	delete(x.proxies, p.id())
	x.disconnectedLocked(p)
	delete(x.presence.retiring, p)
	x.metrics.proxies.Dec()
	x.renewals.cancel(p)
	x.insights.close(p.record)
	if p.target != nil {
		p.mesh.removeProxy(p)
	}
	x.network.drop(p)
	p.mesh.follow(p, nil)
	delete(p.mesh.proxies, p)
	delete(p.mesh.unready, p)
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

// commitsAtOnce limits the commits applied before proxies that connect or disconnect get a turn.
const commitsAtOnce = 256

// catchUp applies all available commits.
func (x *Proxies) catchUp() {
	for x.catchUpSome() {
	}
}

// catchUpSome applies the next commits, and reports whether there are more.
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
		cause := commit.Cause // a copy: a proxy that waits with it must not keep the commit in memory
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
