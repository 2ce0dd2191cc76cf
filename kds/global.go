package kds

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/messages"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
)

// GlobalConfig configures the global's side of KDS.
type GlobalConfig struct {
	// Store holds the mesh's resources; required.
	Store store.Store
	// Status holds volatile resources: DataplaneInsights. If it is nil, they go to Store.
	Status store.Store
	// Validate judges the resources that zones send, after mapping, given the name of the zone's system namespace. Nil
	// accepts all that decode.
	Validate func(r *resources.Resource, systemNamespace string) error
	// SystemNamespace decides the roles of zones' policies; resources.DefaultSystemNamespace by default. CopyNamespace
	// is the namespace of copies here; empty on Universal.
	SystemNamespace, CopyNamespace string
	// Self describes this global to peers; NewGlobal sets its features.
	Self Peer
	// MaxMessageSize is the size in bytes at which messages are split: DefaultMaxMessageSize by default, at most
	// MaxMessageSize.
	MaxMessageSize int
	// SendTimeout ends the session of a zone that does not read, once a message has waited that long for room in the
	// transport; 10 s by default.
	SendTimeout time.Duration
	// FullSyncLimit is the number of zones that get their full state at once, in order of arrival; DefaultFullSyncLimit
	// by default.
	FullSyncLimit int
	// FullSyncs, if not nil, is called when the first full state begins and when the last one ends; it must return
	// quickly.
	FullSyncs func(under bool)
	// AnswerTimeout ends the session of a zone that does not answer a message while more waits for it; 2 min by
	// default.
	AnswerTimeout time.Duration
	// HealthInterval is the interval at which zones call HealthCheck; zero leaves it to them.
	HealthInterval time.Duration
	// Authenticate returns, for each call, which zone the caller is (ClientID returns which it claims to be); nil
	// trusts the claim. Its errors wrap ErrUnauthenticated or ErrNotAllowed, or are those of ClientID. Recheck checks
	// the Pass of the call that began a session again.
	Authenticate func(ctx context.Context) (zone string, pass Pass, err error)
	// Limits bound what one zone can make the global hold.
	Limits Limits
	// AcceptDeletes reports whether an operator lets removals pass that the mass-deletion guard holds; nil never does.
	AcceptDeletes func(zone string, t resources.Type) bool
	// Epoch identifies the store's history: zones hold the deletions that they would make because a store of
	// another epoch lacks the resources. If empty, it is not announced.
	Epoch string
	// StoreOf keeps which epoch of a zone's store the global has accepted. What a store of another epoch
	// lacks is held, not removed. Nil compares nothing.
	StoreOf func(zone string) Epochs
	// Compare returns the position of the store, and whether the store continues the one that a zone has seen; nil
	// compares nothing.
	Compare func(ctx context.Context, seen Seen) (now Seen, continues bool, err error)
	// WordAt returns the word of the store's last start at a revision, for a store that several servers write: starts of
	// others may fall between two messages of a session. Nil otherwise.
	WordAt func(revision uint64) string
	// Replica is this server's instance name among those that share Store, which then holds a claim for each zone.
	// Empty for a server that has its store to itself.
	Replica string
	// Versions persists the versions of zones' copies over restarts; nil keeps them in memory only.
	Versions *VersionFiles
	// Open decrypts the secrets of resources that are sent; nil if nothing is sealed.
	Open OpenFunc
	// Observer receives the events of sessions; nil for none.
	Observer Observer
	// Tracer records a span for each step of a traced change; nil for none.
	Tracer trace.Tracer
	// Panics recovers panics on behalf of one zone; with nil they end the process.
	Panics *panics.Guard
	// Now is the wall clock; time.Now by default.
	Now func() time.Time
	Log *slog.Logger

	// inspect is senderConfig.inspect.
	inspect func(*sender)
}

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
	slots   *syncSlots
	// started is the time from which on this server can know of zones.
	started time.Time
	ctx     context.Context
	drain   context.CancelCauseFunc
	// readers counts the goroutines that read streams, and the pacer's; they end with their streams.
	readers sync.WaitGroup

	mu       sync.Mutex
	last     uint64                              // guarded by mu: the number of the newest session
	sessions map[string]*session                 // guarded by mu: the current session of each zone
	zones    map[string]*zoneData                // guarded by mu: what outlives sessions
	held     map[string]map[*heldStream]struct{} // guarded by mu: streams that zones hold open beside those of their sessions
}

// zoneData is the global's data about a zone, for the life of the process.
type zoneData struct {
	zone     string
	versions *CopyVersions
	refusals *tracker.Refusals
	ledger   *tracker.Ledger
	over     *tracker.Over
	report   atomic.Pointer[tracker.Report]
	// met tracks the epoch of the zone's store.
	met *peerStore
}

// NewGlobal returns the global's side of KDS. Register adds it to a gRPC server; Drain ends it.
func NewGlobal(c GlobalConfig) *Global {
	if c.Validate == nil {
		c.Validate = func(*resources.Resource, string) error { return nil }
	}
	if c.SystemNamespace == "" {
		c.SystemNamespace = resources.DefaultSystemNamespace
	}
	c.Limits = c.Limits.filled()
	c.MaxMessageSize = messageSize(c.MaxMessageSize)
	if c.FullSyncLimit <= 0 {
		c.FullSyncLimit = DefaultFullSyncLimit
	}
	if c.SendTimeout == 0 {
		c.SendTimeout = defaultSendTimeout
	}
	if c.AnswerTimeout == 0 {
		c.AnswerTimeout = defaultAnswerTimeout
	}
	if c.Observer == nil {
		c.Observer = silent{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
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

const (
	defaultSendTimeout   = 10 * time.Second
	defaultAnswerTimeout = 2 * time.Minute
)

// DefaultFullSyncLimit and DefaultSendTimeout are the defaults of GlobalConfig.
const (
	DefaultFullSyncLimit = 50
	DefaultSendTimeout   = defaultSendTimeout
)

func messageSize(n int) int {
	if n <= 0 {
		n = DefaultMaxMessageSize
	}
	return min(n, MaxMessageSize-envelopeRoom)
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

// Wait returns once all goroutines of streams have ended: call it after the gRPC server has stopped.
func (g *Global) Wait() { g.readers.Wait() }

// Encoder returns the encoder that all streams share; its figures are for metrics.
func (g *Global) Encoder() *Encoder { return g.encoder }

// Refusals lists the current refusals between the global and a zone, in both directions.
func (g *Global) Refusals(zone string) []tracker.Refusal {
	g.mu.Lock()
	data := g.zones[zone]
	g.mu.Unlock()
	if data == nil {
		return nil
	}
	return data.refusals.List()
}

// Pass is the credential by which a zone was admitted. It is safe for concurrent use and cheap to check.
type Pass interface {
	// Err returns the reason why the pass no longer holds, or nil while it does.
	Err() error
}

// Recheck ends each session, and each stream held beside one, whose Pass no longer holds. Call it when credentials are
// revoked, and at intervals. Once it returns, a session that it ended can no longer write.
func (g *Global) Recheck() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		if s.pass == nil {
			continue
		}
		if err := g.config.Panics.Do(serving, s.pass.Err); err != nil {
			s.cancel(err)
		}
	}
	g.recheckHeldLocked()
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

// GlobalToZoneSync implements kdspb.KDSSyncServiceServer: the zone subscribes, the global sends.
func (g *Global) GlobalToZoneSync(stream globalToZoneServer) error {
	s, data, err := g.join(stream.Context(), exchange.GlobalToZone)
	if err != nil {
		return ToStatus(err)
	}
	sender := g.senderOf(s, data)
	requests := make(chan *discovery.DeltaDiscoveryRequest)
	return g.serve(s, exchange.GlobalToZone,
		func() error { return receiveAll(s.ctx, sender.forRun(checked(stream.Recv, checkRequest)), requests) },
		func() error {
			g.pacer.enter(sender, g.readers.Go)
			defer g.pacer.leave(sender)
			return sender.run(s.ctx, stream, requests)
		})
}

// senderOf makes the sender of a session. Like receiverOf it is a function of its own, because its caller waits for the
// length of the session: the size of that stack decides whether the garbage collector halves it, for each zone.
func (g *Global) senderOf(s *session, data *zoneData) *sender {
	return newSender(senderConfig{
		direction: exchange.GlobalToZone, zone: s.zone, identifier: "global", replica: g.config.Replica,
		store: g.config.Store, pace: g.pacer, slots: g.slots, wordAt: g.config.WordAt,
		filter: g.filter, encoder: g.encoder, refusals: data.refusals, ledger: data.ledger, over: data.over,
		features:   s.features,
		maxMessage: g.config.MaxMessageSize, maxWhole: MaxMessageSize - envelopeRoom,
		sendTimeout: g.config.SendTimeout, answerTimeout: g.config.AnswerTimeout, now: g.config.Now,
		tracer: g.config.Tracer, panics: g.config.Panics, session: s, log: g.logOf(s, exchange.GlobalToZone),
		inspect: g.config.inspect,
	})
}

// serve runs one stream of a session, with a goroutine to read it. The session ends with the stream, for whatever
// reason.
func (g *Global) serve(s *session, d exchange.Direction, read, run func() error) error {
	g.readers.Go(func() { s.cancel(ended(g.config.Panics.Do(serving, read))) })
	return ToStatus(g.leave(s, d, g.config.Panics.Do(serving, run)))
}

// ZoneToGlobalSync implements kdspb.KDSSyncServiceServer: the global subscribes, the zone sends.
func (g *Global) ZoneToGlobalSync(stream zoneToGlobalServer) error {
	s, data, err := g.join(stream.Context(), exchange.ZoneToGlobal)
	if err != nil {
		return ToStatus(err)
	}
	responses := make(chan *discovery.DeltaDiscoveryResponse)
	receiver := g.receiverOf(s, data)
	return g.serve(s, exchange.ZoneToGlobal,
		func() error { return receiveAll(s.ctx, checked(stream.Recv, checkResponse), responses) },
		func() error {
			s.observe(Event{Kind: StreamOpened, Time: s.now(), Direction: exchange.ZoneToGlobal})
			return receiver.run(s.ctx, stream, responses)
		})
}

// receiverOf makes the receiver of a session.
func (g *Global) receiverOf(s *session, data *zoneData) *receiver {
	system := cmp.Or(s.system, g.config.SystemNamespace)
	return newReceiver(receiverConfig{
		arrival: exchange.Arrival{Origin: exchange.Origin{Direction: exchange.ZoneToGlobal, Zone: s.zone},
			SystemNamespace: system, OwnNamespace: g.config.SystemNamespace, CopyNamespace: g.config.CopyNamespace},
		store: g.config.Store, status: g.config.Status, mapping: g.mapping,
		validate: func(r *resources.Resource) error { return g.config.Validate(r, system) }, refusals: data.refusals,
		ledger: data.ledger, versions: data.versions, met: data.met,
		quota: &quota{limits: g.config.Limits}, over: data.over,
		replica: g.config.Replica, resume: s.features.Has(exchange.FeatureResume), node: nodeOf(s.zone, g.config.Self),
		acceptDeletes: g.config.AcceptDeletes,
		sendTimeout:   g.config.SendTimeout, tracer: g.config.Tracer, panics: g.config.Panics, session: s,
		log: g.logOf(s, exchange.ZoneToGlobal),
	})
}

// HealthCheck implements kdspb.GlobalKDSServiceServer. Its header announces our features: a zone reads them before it
// opens streams.
func (g *Global) HealthCheck(ctx context.Context, _ *meshpb.ZoneHealthCheckRequest) (*meshpb.ZoneHealthCheckResponse,
	error) {
	zone, md, _, err := g.identify(ctx)
	if err != nil {
		return nil, ToStatus(err)
	}
	header := metadata.MD{}
	header.Append(metadataFeatures, g.config.Self.Features.Names()...)
	if g.config.Epoch != "" {
		header.Append(metadataEpoch, g.config.Epoch)
	}
	if err := g.compare(ctx, parseSeen(md.Get(metadataSeen)), header); err != nil {
		return nil, ToStatus(err)
	}
	if g.config.StoreOf != nil {
		seen, err := g.config.StoreOf(zone).Seen(ctx)
		if err != nil {
			return nil, ToStatus(err)
		}
		header.Append(metadataSeen, seen.String())
	}
	if err := grpc.SetHeader(ctx, header); err != nil {
		return nil, err
	}
	g.config.Observer.Observe(Event{Kind: HealthChecked, Time: g.config.Now(), Zone: zone,
		Peer: &Peer{AuthTokenProvided: len(md.Get(metadataAuthorization)) > 0}})
	return &meshpb.ZoneHealthCheckResponse{Interval: durationpb.New(g.config.HealthInterval)}, nil
}

// compare adds the store's position to the header, and whether the store lacks what the zone has seen of it.
func (g *Global) compare(ctx context.Context, seen Seen, header metadata.MD) error {
	if g.config.Compare == nil {
		return nil
	}
	now, continues, err := g.config.Compare(ctx, seen)
	if err != nil {
		return err
	}
	header.Append(metadataPoint, now.String())
	if !continues {
		header.Append(metadataForgotten, seen.String())
	}
	return nil
}

// StreamXDSConfigs implements kdspb.GlobalKDSServiceServer. The global queries no proxies over it.
func (g *Global) StreamXDSConfigs(stream grpc.BidiStreamingServer[meshpb.XDSConfigResponse,
	meshpb.XDSConfigRequest]) error {
	return g.holdOpen(stream)
}

// StreamStats implements kdspb.GlobalKDSServiceServer, as StreamXDSConfigs.
func (g *Global) StreamStats(stream grpc.BidiStreamingServer[meshpb.StatsResponse, meshpb.StatsRequest]) error {
	return g.holdOpen(stream)
}

// StreamClusters implements kdspb.GlobalKDSServiceServer, as StreamXDSConfigs.
func (g *Global) StreamClusters(stream grpc.BidiStreamingServer[meshpb.ClustersResponse,
	meshpb.ClustersRequest]) error {
	return g.holdOpen(stream)
}

// holdOpen keeps a stream open and sends nothing: Kuma zones open these streams and expect them to stay open.
func (g *Global) holdOpen(stream grpc.ServerStream) error {
	zone, _, pass, err := g.identify(stream.Context())
	if err != nil {
		return ToStatus(err)
	}
	connection := connectionOf(stream.Context())
	if connection == nil {
		return ToStatus(errNoOptions)
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	release, err := g.hold(zone, &heldStream{connection: connection, pass: pass, cancel: cancel})
	if err != nil {
		return ToStatus(err)
	}
	defer release()
	select {
	case <-ctx.Done():
		if stream.Context().Err() != nil {
			return nil
		}
		return ToStatus(context.Cause(ctx))
	case <-g.ctx.Done():
		return ToStatus(ErrDraining)
	}
}

func (g *Global) logOf(s *session, d exchange.Direction) *slog.Logger {
	return g.config.Log.With("zone", s.zone, "session", s.number, "stream", d.String())
}
