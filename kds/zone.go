package kds

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

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
	pulse     *tracker.Pulse
	met       *peerStore
	current   atomic.Pointer[session]
	conn      atomic.Pointer[grpc.ClientConn] // of the current session
	heard     Activity                        // of its connection
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
	if !c.Answers {
		c.Self.Features &^= exchange.FeatureQuestions | exchange.FeatureReported
	}
	news := make(wakeReports, 1)
	c.Observer = Observers{c.Observer, news}
	pulse := &tracker.Pulse{}
	z := &Zone{started: c.Now(), config: c, news: news, mapping: exchange.NewMapping(),
		filter: exchange.NewFilter(), versions: c.Versions.of("global"), pulse: pulse,
		refusals: tracker.NewRefusals(c.Now, pulse), over: tracker.NewOver(c.Now, pulse),
		ledger: tracker.NewLedger(c.Now, pulse)}
	z.encoder = newEncoder(z.mapping, c.Open)
	z.encoder.panics = c.Panics
	z.met = &peerStore{kept: c.Epochs, store: c.Store, ledger: z.ledger, log: c.Log,
		from: exchange.GlobalToZone, now: c.Now, pulse: pulse}
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
	part(func() error { return ended(receiveAll(s.ctx, sender.forRun(up.RecvMsg), requests)) })
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
			SystemNamespace: z.config.SystemNamespace, OwnNamespace: z.config.SystemNamespace},
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
