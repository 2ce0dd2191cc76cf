package kds

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// ZoneConfig configures the zone's side of KDS.
type ZoneConfig struct {
	// Zone is this zone's name; required.
	Zone string
	// Target is the global's host:port; required. Others are the addresses of its other replicas, or more of its own. A
	// zone begins with any of them, so that zones spread, and tries the next at once when a session ends; it waits only
	// if none serves.
	Target string
	Others []string
	// Credentials secure the connection; nil is plaintext, for loopback.
	Credentials credentials.TransportCredentials
	// Store holds the zone's resources; required.
	Store store.Store
	// Status holds volatile resources: DataplaneInsights. If it is nil, those of Store are sent.
	Status store.Reader
	// Validate judges the global's resources after mapping; nil accepts all that decode.
	Validate func(*resources.Resource) error
	// SystemNamespace decides the roles of policies; resources.DefaultSystemNamespace by default. CopyNamespace is the
	// namespace of copies here; empty on Universal.
	SystemNamespace, CopyNamespace string
	// Self describes this zone to the global; NewZone sets its features.
	Self Peer
	// MaxMessageSize is the size in bytes at which messages are split: DefaultMaxMessageSize by default, at most
	// MaxMessageSize.
	MaxMessageSize int
	// SendTimeout ends a session whose global does not read; 10 s by default. AnswerTimeout ends one whose global does
	// not answer while more waits for it; 2 min by default.
	SendTimeout, AnswerTimeout time.Duration
	// HealthInterval is the interval of HealthCheck unless the global sets one; 1 min by default.
	HealthInterval time.Duration
	// BackoffMin (500 ms by default) and BackoffMax (30 s) bound the wait between sessions, which doubles, with jitter.
	// A session that lasted longer than the wait before it resets the wait.
	BackoffMin, BackoffMax time.Duration
	// Beside runs with each session, on its connection and with its metadata in ctx, until ctx ends. When it returns,
	// the session ends. Nil for nothing.
	Beside func(ctx context.Context, conn grpc.ClientConnInterface) error
	// AcceptDeletes reports whether an operator lets removals pass that the mass-deletion guard holds; nil never does.
	AcceptDeletes func(zone string, t resources.Type) bool
	// Proxies lists the proxies that have not acknowledged all that follows from the store, and counts the streams that
	// proxies had opened before. told reports whether the global has a revision of Status: a proxy whose problems it does
	// not know yet counts as behind. If Proxies is nil, the global gets no reports on them.
	Proxies func(told func(revision uint64) bool) (behind []tracker.ProxyBehind, streams uint32)
	// Own identifies the zone's own store; nil announces nothing.
	Own OwnStore
	// Epochs keeps which epoch of the global's store the zone has accepted; nil accepts any.
	Epochs Epochs
	// Versions persists the versions of the global's copies over restarts; nil keeps them in memory only.
	Versions *VersionFiles
	// Open decrypts the secrets of resources that are sent; nil if nothing is sealed.
	Open OpenFunc
	// Observer receives the events of sessions; nil for none.
	Observer Observer
	// Tracer records a span for each step of a traced change; nil for none.
	Tracer trace.Tracer
	// Panics recovers panics on behalf of the global; with nil they end the process.
	Panics *panics.Guard
	// Now is the wall clock; time.Now by default.
	Now func() time.Time
	Log *slog.Logger

	// inspect is senderConfig.inspect.
	inspect func(*sender)
}

// Zone keeps a session with the global.
type Zone struct {
	config    ZoneConfig
	mapping   *exchange.Mapping
	filter    *exchange.Filter
	encoder   *Encoder
	versions  *CopyVersions
	refusals  *tracker.Refusals
	over      *tracker.Over
	ledger    *tracker.Ledger
	met       *peerStore
	current   atomic.Pointer[session]
	conn      atomic.Pointer[grpc.ClientConn] // of the current session
	heard     Heard                           // of its connection
	news      wakeReports
	connected atomic.Bool
	sessions  uint64    // of Run's goroutine
	order     []int     // the order in which targets are tried; of Run's goroutine
	target    int       // the position in order of the next target; of Run's goroutine
	started   time.Time // the time from which on this server can know of the global
	opened    time.Time // when the last session's streams were open; zero if they never were; of Run's goroutine
}

// NewZone returns the zone's side of KDS. Run runs it.
func NewZone(c ZoneConfig) *Zone {
	if c.Credentials == nil {
		c.Credentials = insecure.NewCredentials()
	}
	if c.Validate == nil {
		c.Validate = func(*resources.Resource) error { return nil }
	}
	c.SystemNamespace = cmp.Or(c.SystemNamespace, resources.DefaultSystemNamespace)
	c.MaxMessageSize = messageSize(c.MaxMessageSize)
	c.SendTimeout = cmp.Or(c.SendTimeout, DefaultSendTimeout)
	c.AnswerTimeout = cmp.Or(c.AnswerTimeout, defaultAnswerTimeout)
	c.HealthInterval = cmp.Or(c.HealthInterval, time.Minute)
	c.BackoffMin = cmp.Or(c.BackoffMin, 500*time.Millisecond)
	c.BackoffMax = cmp.Or(c.BackoffMax, 30*time.Second)
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
	news := make(wakeReports, 1)
	c.Observer = Observers{c.Observer, news}
	z := &Zone{started: c.Now(), config: c, news: news, mapping: exchange.NewMapping(),
		filter: exchange.NewFilter(), versions: c.Versions.of("global"), refusals: tracker.NewRefusals(c.Now),
		over: tracker.NewOver(c.Now), ledger: tracker.NewLedger(c.Now)}
	z.encoder = newEncoder(z.mapping, c.Open)
	z.encoder.panics = c.Panics
	z.met = &peerStore{kept: c.Epochs, store: c.Store, ledger: z.ledger, log: c.Log,
		from: exchange.GlobalToZone, now: c.Now}
	return z
}

// Connected reports whether both streams are open.
func (z *Zone) Connected() bool { return z.connected.Load() }

// Refusals lists the current refusals between this zone and the global, in both directions.
func (z *Zone) Refusals() []tracker.Refusal { return z.refusals.List() }

// session dials, runs both streams and the health checks, and returns the reason of the first that ends.
func (z *Zone) session(ctx context.Context) error {
	conn, err := grpc.NewClient(z.targetNow(),
		append(dialOptions(), grpc.WithTransportCredentials(z.heard.Credentials(z.config.Credentials)))...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	z.sessions++
	s := newSession(z.outgoing(ctx), z.sessions, z.config.Zone, z.config.Observer, z.config.Now)
	defer s.cancel(ErrStreamEnded)
	health, err := z.checkHealth(s.ctx, conn, longestHandshake)
	if err != nil {
		return err
	}
	s.transport = z.heard.transport.Load()
	s.features = health.features
	if err := z.met.meet(s.ctx, health); err != nil {
		return err
	}
	identified, err := z.identified(s.ctx, health.seen)
	if err != nil {
		return err
	}
	streams := kdspb.NewKDSSyncServiceClient(conn)
	down, err := streams.GlobalToZoneSync(identified)
	if err != nil {
		return err
	}
	up, err := streams.ZoneToGlobalSync(identified)
	if err != nil {
		return err
	}
	z.enter(s, conn)
	defer z.leave()
	s.observe(Event{Kind: SessionStarted, Time: z.opened})
	z.config.Log.Info("connected to the global", "zone", z.config.Zone, "global", z.targetNow(), "session", s.number)
	err = z.serve(s, conn, down, up, health.interval)
	z.leave()
	s.observe(Event{Kind: SessionEnded, Time: z.config.Now(), Err: err})
	return err
}

func (z *Zone) enter(s *session, conn *grpc.ClientConn) {
	z.connected.Store(true)
	z.current.Store(s)
	z.conn.Store(conn)
	z.opened = z.config.Now()
	z.ledger.Session(true, z.opened)
}

func (z *Zone) leave() {
	if !z.connected.Swap(false) {
		return
	}
	z.current.Store(nil)
	z.conn.Store(nil)
	z.ledger.Session(false, z.config.Now())
	z.over.Meet(tracker.LimitRefusals, "", tracker.KeptRefusals, z.refusals.Rest())
}

// serve runs the parts of a session; the first that ends, ends all.
func (z *Zone) serve(s *session, conn *grpc.ClientConn, down globalToZoneClient, up zoneToGlobalClient,
	interval time.Duration) error {
	var group errgroup.Group
	part := func(run func() error) {
		group.Go(func() error {
			err := z.config.Panics.Do(serving, run)
			s.cancel(err)
			return err
		})
	}
	responses, requests := make(chan *discovery.DeltaDiscoveryResponse), make(chan *discovery.DeltaDiscoveryRequest)
	opened := s.opened(exchange.GlobalToZone, z.config.Self.Features.Has(exchange.FeatureFrames), down.Recv)
	part(func() error { return ended(receiveAll(s.ctx, checked(opened, checkResponse), responses)) })
	sender := z.newSender(s)
	part(func() error { return ended(receiveAll(s.ctx, sender.forRun(checked(up.Recv, checkRequest)), requests)) })
	part(func() error { return z.newReceiver(s).run(s.ctx, down, responses) })
	part(func() error { return sender.run(s.ctx, up, requests) })
	part(func() error { return z.report(s.ctx, s, conn) })
	part(func() error { return z.keepHealthy(s.ctx, conn, interval) })
	if z.config.Beside != nil {
		part(func() error { return z.config.Beside(s.ctx, conn) })
	}
	_ = group.Wait()
	return context.Cause(s.ctx)
}

func (z *Zone) newReceiver(s *session) *receiver {
	return newReceiver(receiverConfig{
		arrival: exchange.Arrival{Origin: exchange.Origin{Direction: exchange.GlobalToZone, Zone: s.zone},
			SystemNamespace: z.config.SystemNamespace, OwnNamespace: z.config.SystemNamespace,
			CopyNamespace: z.config.CopyNamespace},
		store: z.config.Store, mapping: z.mapping, validate: z.config.Validate, refusals: z.refusals, ledger: z.ledger,
		versions: z.versions, over: z.over, met: z.met,
		resume: s.features.Has(exchange.FeatureResume), node: nodeOf(s.zone, z.config.Self),
		acceptDeletes: z.config.AcceptDeletes,
		sendTimeout:   z.config.SendTimeout, tracer: z.config.Tracer, panics: z.config.Panics, session: s,
		log: z.logOf(s, exchange.GlobalToZone),
	})
}

func (z *Zone) newSender(s *session) *sender {
	return newSender(senderConfig{
		direction: exchange.ZoneToGlobal, zone: s.zone, identifier: s.zone, store: z.config.Store,
		status: z.config.Status, pace: unpaced{z.config.Store},
		filter: z.filter, encoder: z.encoder, refusals: z.refusals, ledger: z.ledger, over: z.over, features: s.features,
		maxMessage: z.config.MaxMessageSize, maxWhole: MaxMessageSize - envelopeRoom,
		sendTimeout: z.config.SendTimeout, answerTimeout: z.config.AnswerTimeout, now: z.config.Now,
		tracer: z.config.Tracer, panics: z.config.Panics, session: s, log: z.logOf(s, exchange.ZoneToGlobal),
		inspect: z.config.inspect,
	})
}

func (z *Zone) logOf(s *session, d exchange.Direction) *slog.Logger {
	return z.config.Log.With("zone", s.zone, "session", s.number, "stream", d.String())
}

// outgoing adds the metadata of every call. Source: Kuma's wire format, "Request metadata".
func (z *Zone) outgoing(ctx context.Context) context.Context {
	pairs := []string{
		metadataClientID, z.config.Zone, metadataProtocol, "v3", metadataVersion, z.config.Self.Version,
		metadataFeatures, exchange.FeaturePingHealth, metadataSystemNamespace, z.config.SystemNamespace,
	}
	for _, name := range z.config.Self.Features.Names() {
		pairs = append(pairs, metadataFeatures, name)
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// identified adds the metadata of streams: what identifies the zone's own store, of which the global has seen so much.
func (z *Zone) identified(ctx context.Context, seen []string) (context.Context, error) {
	if z.config.Own == nil {
		return ctx, nil
	}
	name, now, renamed, err := z.config.Own.Announce(ctx, parseSeen(seen))
	if err != nil {
		return nil, fmt.Errorf("what identifies this zone's store: %w", err)
	}
	if renamed {
		z.config.Log.Warn("this zone's store is an older copy of the one that the global knew: its disk or file was rolled back; the global deletes nothing for that reason until an operator accepts it",
			"global_has_seen", parseSeen(seen).String(), "is_at", now.String())
	}
	pairs := []string{metadataEpoch, name, metadataPoint, now.String()}
	if len(seen) == 1 {
		pairs = append(pairs, metadataCompared, seen[0])
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...), nil
}
