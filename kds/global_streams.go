package kds

import (
	"cmp"
	"log/slog"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
)

// GlobalToZoneSync implements kdspb.KDSSyncServiceServer: the zone subscribes, the global sends.
func (g *Global) GlobalToZoneSync(stream globalToZoneServer) error {
	s, data, err := g.join(stream.Context(), exchange.GlobalToZone)
	if err != nil {
		return ToStatus(err)
	}
	sender := g.senderOf(s, data)
	requests := make(chan *discovery.DeltaDiscoveryRequest)
	return g.serve(s, exchange.GlobalToZone,
		func() error { return receiveAll(s.ctx, sender.forRun(stream.RecvMsg), requests) },
		func() error {
			g.pacer.enter(s.zone, sender, g.readers.Go)
			defer g.pacer.leave(s.zone, sender)
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
		func() error {
			return receiveAll(s.ctx, checked(s.opened(exchange.ZoneToGlobal, false, stream.Recv), checkResponse), responses)
		},
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
			SystemNamespace: system, OwnNamespace: g.config.SystemNamespace},
		store: g.config.Store, status: g.config.Status, mapping: g.mapping,
		validate: func(r *resources.Resource) error { return g.config.Validate(r, system) }, refusals: data.refusals,
		ledger: data.ledger, versions: data.versions, met: data.met,
		quota: &quota{limits: g.config.Limits}, over: data.over, allowance: data.allowance,
		replica: g.config.Replica, resume: s.features.Has(exchange.FeatureResume), node: nodeOf(s.zone, g.config.Self),
		acceptDeletes: g.config.AcceptDeletes,
		sendTimeout:   g.config.SendTimeout, tracer: g.config.Tracer, panics: g.config.Panics, session: s,
		log: g.logOf(s, exchange.ZoneToGlobal),
	})
}

func (g *Global) logOf(s *session, d exchange.Direction) *slog.Logger {
	return g.config.Log.With("zone", s.zone, "session", s.number, "stream", d.String())
}
