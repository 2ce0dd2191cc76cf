package kds

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/messages"
	"github.com/causeway-mesh/causeway/resources"
)

// serving is the label of KDS in logs and metrics of panics.
const serving = "kds"

// Global serves KDS to zones. Its methods are safe for concurrent use.
type Global struct {
	config  GlobalConfig
	home    resources.Home
	mapping *exchange.Mapping
	filter  *exchange.Filter
	encoder *Encoder
	pacer   *pacer
	calls   calls
	slots   *syncSlots
	// started is the time from which on this server can know of zones.
	started time.Time
	ctx     context.Context
	drain   context.CancelCauseFunc
	// readers counts the streams, the goroutines that read them, and the pacer's; these end with their streams. A stream
	// is counted with mu held, unless the server drains, so that Wait misses none.
	readers sync.WaitGroup

	mu       sync.Mutex
	last     uint64                              // guarded by mu: the number of the newest session
	sessions map[string]*session                 // guarded by mu: the current session of each zone
	zones    map[string]*zoneData                // guarded by mu: what outlives sessions
	held     map[string]map[*heldStream]struct{} // guarded by mu: streams that zones hold open beside those of their sessions
	first    tracker.Pulse                       // beats when a zone gets its data
	rechecks rechecks                            // guarded by mu
}

// zoneData is the global's data about a zone, for the life of the process.
type zoneData struct {
	zone     string
	versions *CopyVersions
	refusals *tracker.Refusals
	ledger   *tracker.Ledger
	over     *tracker.Over
	pulse    *tracker.Pulse // beats with all of these
	report   atomic.Pointer[tracker.Report]
	// met tracks the epoch of the zone's store.
	met *peerStore
	// allowance limits the rate of the zone's changes.
	allowance *allowance
}

// NewGlobal returns the global's side of KDS. Register adds it to a gRPC server; Drain ends it.
func NewGlobal(c GlobalConfig) *Global {
	c.fill()
	c.Self.Features = announced(c.Tracer)
	g := &Global{
		config: c, home: resources.Home{SystemNamespace: c.SystemNamespace}, mapping: exchange.NewMapping(),
		filter:  exchange.NewFilter(),
		started: c.Now(), sessions: map[string]*session{}, zones: map[string]*zoneData{},
		held: map[string]map[*heldStream]struct{}{},
	}
	g.encoder, g.pacer, g.slots = newEncoder(g.mapping, c.Open), newPacer(c.Store), newSyncSlots(c.FullSyncLimit, c.FullSyncs)
	g.encoder.panics = c.Panics
	g.ctx, g.drain = context.WithCancelCause(context.Background())
	return g
}

// Register adds the services to a server that was made with ServerOptions.
func (g *Global) Register(r grpc.ServiceRegistrar) {
	r = messages.Judged(g.config.Panics.Registrar(serving, r), g.judge)
	kdspb.RegisterKDSSyncServiceServer(r, g)
	kdspb.RegisterGlobalKDSServiceServer(r, g)
	kdspb.RegisterReportServiceServer(r, g)
}

// AddObservers adds receivers of the events of sessions. Call it before Register.
func (g *Global) AddObservers(more ...Observer) {
	g.config.Observer = append(Observers{g.config.Observer}, more...)
}

// Drain ends all sessions and tells zones to reconnect.
func (g *Global) Drain() { g.drain(ErrDraining) }

// Wait returns once all streams and their goroutines have ended: call it after Drain, when the gRPC server has stopped.
func (g *Global) Wait() {
	g.mu.Lock() // a stream that entered before Drain is counted
	//nolint:staticcheck // nothing is done with mu held
	g.mu.Unlock()
	g.readers.Wait()
}

// Encoder returns the encoder that all streams share; its figures are for metrics.
func (g *Global) Encoder() *Encoder { return g.encoder }

// Refusals lists the current refusals between the global and a zone, in both directions.
func (g *Global) Refusals(zone string) []tracker.Refusal {
	if f := g.refusalsOf(zone); f != nil {
		return f.List()
	}
	return nil
}

// CountRefusals counts the refusals that Refusals lists.
func (g *Global) CountRefusals(zone string) int {
	if f := g.refusalsOf(zone); f != nil {
		return f.Count()
	}
	return 0
}

// DigestRefusals returns a text that changes with the refusals that Refusals lists; empty if there are none.
func (g *Global) DigestRefusals(zone string) string {
	if f := g.refusalsOf(zone); f != nil {
		return f.Digest()
	}
	return ""
}

// refusalsOf returns nil for a zone that was never here.
func (g *Global) refusalsOf(zone string) *tracker.Refusals {
	g.mu.Lock()
	defer g.mu.Unlock()
	if data := g.zones[zone]; data != nil {
		return data.refusals
	}
	return nil
}

// End ends a zone's session and held streams, if any, and tells the zone why.
func (g *Global) End(zone string, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.sessions[zone]; s != nil {
		s.cancel(why)
	}
	g.freeLocked(zone, why, allHeld)
}

// InSession reports whether a zone has a session, here or on another replica, or one that has not fully ended.
func (g *Global) InSession(zone string) bool {
	g.mu.Lock()
	here := g.sessions[zone] != nil
	g.mu.Unlock()
	if here || g.config.Replica == "" {
		return here
	}
	_, away := g.Away(zone)
	return !away
}

// Sessions returns the number of zones that have a session with this server.
func (g *Global) Sessions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sessions)
}

// Forget ends the session of a deleted zone and drops its data.
func (g *Global) Forget(zone string) {
	g.mu.Lock()
	current := g.sessions[zone]
	g.freeLocked(zone, ErrZoneDeleted, allHeld)
	delete(g.zones, zone)
	g.mu.Unlock()
	g.config.Versions.drop(zone)
	if current != nil {
		current.cancel(ErrZoneDeleted)
	}
}
