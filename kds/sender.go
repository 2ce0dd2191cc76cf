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

// requestStream is a stream of which this side is the one that is asked.
type requestStream interface {
	// SendMsg takes a *response.
	SendMsg(m any) error
	Recv() (*discovery.DeltaDiscoveryRequest, error)
}

// senderConfig is what one stream's sender works with.
type senderConfig struct {
	direction exchange.Direction
	// zone is the zone's end of the stream; identifier is what this side calls itself.
	zone, identifier string
	// replica is this server's instance among several, empty for one that is alone.
	replica string
	store   store.Reader
	// pace says when to look at the store.
	pace     pace
	crossing *exchange.Crossing
	encoder  *Encoder
	refusals *tracker.Refusals
	ledger   *tracker.Ledger
	// over remembers which bounds the peer met.
	over *tracker.Over
	// turns limits full states; nil does not.
	turns *turns
	// status, when not nil, holds live types: those of which nothing is durable on this side.
	status store.Reader
	// features are what the peer announced before its first request, in the metadata.
	features exchange.Features
	// maxMessage cuts messages, maxWhole bounds one that cannot be cut; bytes.
	maxMessage, maxWhole int
	sendTimeout          time.Duration
	// answerTimeout is how long a peer may leave a message unanswered while there is more to say.
	answerTimeout time.Duration
	now           func() time.Time
	// tracer is nil when nothing is traced.
	tracer  trace.Tracer
	panics  *panics.Guard
	session *session
	log     *slog.Logger
}

// sender answers the requests of one stream. Its state for a type is a place in the store's changelog: nothing is
// polled, listed or queued. The stream's goroutine runs it; what cannot have to wait is also done by whoever brings it, an answer or
// a wave, because waking a goroutine for each zone costs more than the work.
type sender struct {
	senderConfig
	// nudged has room for one signal: there is something that only the stream's goroutine does.
	nudged chan struct{}

	// mu guards all that follows.
	mu sync.Mutex
	// stream is nil before run and after it.
	stream   requestStream
	audience exchange.Audience
	peer     *Peer
	types    map[resources.Type]*subscription
	// order is the registry's, so that what others refer to is sent first.
	order []*subscription
	// durable and live are the stores that are sent from; live has no store where there is no live status.
	durable, live source
	turn          turn
	// wave and liveSeen are up to where the stores were looked at, once looked; settled: all of the wave has been answered.
	wave, liveSeen  uint64
	looked, settled bool
	// judge: what is stored of the zone itself changed, or may have. enabled, when not nil, is what it came to.
	judge   bool
	enabled *bool
	// unsent is a message in flight that only the stream's goroutine may send; failed is why the stream has to end.
	unsent *unsent
	failed error
	nonces nonces
	// begun is the transfer that next begins, until its message is in flight.
	begun transfer
	// unknown counts requests for types of which nothing is told here.
	unknown int
}

// subscription is one type that the peer asked for.
type subscription struct {
	// What is asked of each type of each zone at each change comes first, in one line of the processor's cache.
	descriptor *resources.Descriptor
	source     *source
	// inflight is the message that the peer has not answered.
	inflight *inflight
	// transfer is a list or change that takes several messages, between two of them.
	transfer *transfer
	// cursor: the peer has answered for everything up to this revision.
	cursor uint64
	// dirty: the type changed after cursor, or may have. full: the changes are not known, a complete list is due.
	dirty, full bool
	// listed: the complete list that begins a subscription has been answered.
	listed bool

	line *tracker.Line
	// noticed is when dirty became true.
	noticed time.Time
	// have are the versions that the peer said it has, until the first list is answered; haveSize is about what they take, in bytes.
	have     map[string]string
	haveSize int
}

// late is a look at the transport of a peer whose answer is late.
type late struct {
	seen passage
	at   time.Time
}

// inflight is a message on its way. The resources are shared with all other streams.
type inflight struct {
	nonce string
	*parcel
	revision uint64
	// next is where the type stands once the peer has answered.
	next *transfer
	// end is what next is when the type is done with this message.
	end  transfer
	sent time.Time
	// heard is when the peer last said that it has the message, zero when it did not.
	heard time.Time
	// late is nil until the answer is.
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

// unsent is a message that nobody has sent yet.
type unsent struct {
	sub     *subscription
	message *response
}

// run serves the stream until it or ctx ends. requests is what arrives on it and was not taken.
func (s *sender) run(ctx context.Context, stream requestStream, requests <-chan *discovery.DeltaDiscoveryRequest) error {
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

// step looks at what is new and sends what is due. The channels are closed when there is more. Unless it is patient, it does not wait
// for the peer, and leaves what may have to.
func (s *sender) step(ctx context.Context, patient bool) (news, status <-chan struct{}, err error) {
	if s.failed != nil {
		return nil, nil, s.failed
	}
	now, news := s.pace.next()
	liveNow, status := s.live.changed()
	// Not with each answer: what came since the wave goes with the next one.
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

// idle reports whether every message has been answered. What sendReady had nothing to send for is not dirty any more.
func (s *sender) idle() bool {
	for _, sub := range s.order {
		if sub.inflight != nil {
			return false
		}
	}
	return true
}

// lists reports whether the type's next message is of a full state.
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
