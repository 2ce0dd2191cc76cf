package kds

import (
	"context"
	"log/slog"
	"sync"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/trace"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// requestStream is the serving end of a stream.
type requestStream interface {
	// SendMsg sends a *response.
	SendMsg(m any) error
	Recv() (*discovery.DeltaDiscoveryRequest, error)
}

// senderConfig configures the sender of one stream.
type senderConfig struct {
	direction exchange.Direction
	// zone is the zone of the stream; identifier is this side's name in messages.
	zone, identifier string
	// replica is this server's instance name among several; empty for a single server.
	replica string
	store   store.Reader
	// wordAt is GlobalConfig.WordAt; nil if the store is this server's alone.
	wordAt func(revision uint64) string
	// pace decides when to look at the store.
	pace     pace
	crossing *exchange.Crossing
	encoder  *Encoder
	refusals *tracker.Refusals
	ledger   *tracker.Ledger
	// over records the limits that the peer met.
	over *tracker.Over
	// turns limits concurrent full states; nil does not.
	turns *turns
	// status, if not nil, holds live types: those that are volatile on this side.
	status store.Reader
	// features are those that the peer announced in the metadata, before its first request.
	features exchange.Features
	// maxMessage is the size at which messages are split, maxWhole that of the largest message that cannot be split,
	// both in bytes.
	maxMessage, maxWhole int
	sendTimeout          time.Duration
	// answerTimeout is how long a peer may leave a message unanswered while more waits for it.
	answerTimeout time.Duration
	now           func() time.Time
	// tracer is nil if tracing is off.
	tracer  trace.Tracer
	panics  *panics.Guard
	session *session
	log     *slog.Logger
}

// sender answers the requests of one stream. Its state for a type is a position in the store's changelog: it polls,
// lists and queues nothing. The stream's goroutine runs it. The goroutine that brings an answer or a wave also does
// what cannot block, because waking a goroutine for each zone costs more than the work.
type sender struct {
	senderConfig
	// nudged holds one signal: there is work that only the stream's goroutine does.
	nudged chan struct{}

	// mu guards all fields below.
	mu sync.Mutex
	// stream is nil before run and after it.
	stream   requestStream
	audience exchange.Audience
	peer     *Peer
	types    map[resources.Type]*subscription
	// order is the registry's, so that referenced types are sent first.
	order []*subscription
	// durable and live are the stores to send from; live has none if there is no live status.
	durable, live source
	turn          turn
	// wave and liveSeen are the positions up to which the stores were read, once looked is set; settled is set once all
	// of the wave was answered.
	wave, liveSeen  uint64
	looked, settled bool
	// judge is set if the zone's own resource may have changed. enabled, if not nil, caches the result.
	judge   bool
	enabled *bool
	// unsent is a message in flight that only the stream's goroutine may send; failed is the reason why the stream must
	// end.
	unsent *unsent
	failed error
	nonces nonces
	// begun is the transfer that next begins, until its message is in flight.
	begun transfer
	// unknown counts requests for types that are not served here.
	unknown int
}

// subscription is one type that the peer subscribed to.
type subscription struct {
	// The fields that every change reads for each type of each zone come first, in one cache line.
	descriptor *resources.Descriptor
	source     *source
	// inflight is the message that the peer has not answered.
	inflight *inflight
	// transfer is a list or change of several messages, between two of them.
	transfer *transfer
	// cursor is the revision up to which the peer has answered everything.
	cursor uint64
	// dirty is set if the type may have changed after cursor; full if the changes are unknown, so that a complete list
	// is due.
	dirty, full bool
	// listed is set once the complete list that begins a subscription was answered.
	listed bool

	line *tracker.Line
	// noticed is the time at which dirty was set.
	noticed time.Time
	// have are the versions that the peer says it has, until the first list is answered; haveSize is their approximate
	// size, in bytes.
	have     map[string]string
	haveSize int
}

// late is a look at the transport of a peer whose answer is late.
type late struct {
	seen traffic
	at   time.Time
}

// inflight is a message on its way. All streams share the resources.
type inflight struct {
	nonce string
	*chunk
	revision uint64
	// next is the position of the type once the peer has answered.
	next *transfer
	// end is the value of next if this message completes the transfer.
	end  transfer
	sent time.Time
	// heard is the time of the peer's last sign of life for this message; zero if there was none.
	heard time.Time
	// late is nil until the answer is late.
	late *late
	// steps end with the answer.
	steps store.Steps
}

func newSender(c senderConfig) *sender {
	if c.ledger == nil {
		c.ledger = tracker.NewLedger()
	}
	return &sender{
		senderConfig: c,
		nudged:       make(chan struct{}, 1),
		judge:        true,
		audience:     exchange.Audience{Direction: c.direction, Zone: c.zone, Features: c.features},
		types:        map[resources.Type]*subscription{},
		durable:      newSource(c.store),
		live:         newSource(c.status),
		turn:         turn{turns: c.turns, most: c.sendTimeout},
	}
}

// unsent is a message that is in flight but not sent yet.
type unsent struct {
	sub     *subscription
	message *response
}

// run serves the stream until it or ctx ends. requests are those that left did not handle.
func (s *sender) run(ctx context.Context, stream requestStream,
	requests <-chan *discovery.DeltaDiscoveryRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = stream
	defer func() { s.stream = nil }()
	defer s.turn.end()
	defer s.abandon()
	for {
		news, status, err := s.step(ctx, true)
		if err != nil {
			return err
		}
		if !s.listing() {
			s.turn.end()
		}
		coming, overdue := s.turn.coming(), s.turn.overdue()
		var request *discovery.DeltaDiscoveryRequest
		late := false
		s.mu.Unlock()
		select {
		case request = <-requests:
		case <-news:
		case <-status:
		case <-s.nudged:
		case <-coming:
		case <-overdue:
			late = true
		case <-ctx.Done():
		}
		s.mu.Lock()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case late:
			s.turn.end()
		case request != nil:
			err = s.handle(request)
		}
		if err != nil {
			return err
		}
	}
}

// step looks at what is new and sends what is due. The channels close when there is more. Unless patient is set, it
// does not wait for the peer, and leaves work that may.
func (s *sender) step(ctx context.Context, patient bool) (news, status <-chan struct{}, err error) {
	if s.failed != nil {
		return nil, nil, s.failed
	}
	now, news := s.pace.next()
	liveNow, status := s.live.changed()
	// Not with each answer: news since the wave goes with the next one.
	if !s.looked || now != s.wave || liveNow != s.liveSeen {
		if err := s.look(); err != nil {
			return nil, nil, err
		}
	}
	s.settled = s.settled && now == s.wave
	s.wave, s.liveSeen, s.looked = now, liveNow, true
	if err := s.sendReady(ctx, patient); err != nil {
		return nil, nil, err
	}
	if !s.settled && s.idle() {
		s.pace.settled(s, s.wave)
		s.settled = true
	}
	return news, status, nil
}

// idle reports whether every message has been answered. A type for which sendReady had nothing to send is no longer
// dirty.
func (s *sender) idle() bool {
	for _, sub := range s.order {
		if sub.inflight != nil {
			return false
		}
	}
	return true
}

// lists reports whether the type's next message belongs to a full state.
func (sub *subscription) lists() bool {
	return sub.full || sub.transfer != nil && sub.transfer.list
}

// listing reports whether a full state is under way or due.
func (s *sender) listing() bool {
	for _, sub := range s.order {
		if sub.dirty && sub.lists() || sub.inflight != nil && sub.inflight.next.list {
			return true
		}
	}
	return false
}
