package kds

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/trace"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/panics"
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
	filter   *exchange.Filter
	encoder  *Encoder
	refusals *tracker.Refusals
	ledger   *tracker.Ledger
	// over records the limits that the peer met.
	over *tracker.Over
	// slots limits concurrent full states; nil does not.
	slots *syncSlots
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
	// inspect, if not nil, is called whenever mu is about to be unlocked: tests check the invariants.
	inspect func(*sender)
}

// sender answers the requests of one stream. It polls, lists and queues nothing: its state for a type is a position in
// the store's changelog.
//
// Three kinds of goroutine drive it. The stream's own goroutine runs run, and does what may wait for the peer or takes
// long. The one that reads the stream calls tryAnswer for each request, and the pacer's calls notify for each flush:
// both do at once what cannot block, because waking a goroutine for each zone costs more than the work
// (docs/decisions/0035-who-works-on-a-stream.md). A stream of one goroutine, without the lock, costs that wakeup.
//
// # The lock
//
// mu guards the whole state. Only run waits for it; tryAnswer and notify give up when it is taken, and leave a signal
// in nudged. run holds it except while it waits for something to do, so the others find each other's work done, or
// run's. Whoever holds it leaves it by unlock, where these hold:
//
//  1. The stream. stream is nil before run and after it, and then nothing is sent. No type is subscribed before peer is
//     set. Once failed is set, nothing is sent either, and run ends with it.
//  2. Types. ordered has the types of byType in the order of the registry, so that a type is sent after those that it
//     refers to. Each has the source that holds it: live for volatile types, durable for all others.
//  3. One message. A type has at most one message in flight, with a nonce of its own among all types. While it has one,
//     the type's position does not move: the message says where it will be once it is answered.
//  4. Unsent. unsent is a message in flight that only run may send. While there is one, no other is made.
//  5. Waiting. Messages that tryAnswer and notify have sent are at most promptBytes, unanswered, so they cannot block.
//  6. Completeness. A type that is not dirty, has nothing in flight and is not between two messages lacks nothing that
//     the stream has read: no commit after its cursor concerns it, up to the source's position.
//  7. Transfers. A list or change of several messages keeps one snapshot until it is done, and is continued, in flight or
//     dirty, until then. A list that is due (full) has not begun.
//  8. Resumption. The peer's versions are kept until the first list is answered, of all types together at most maxHave.
//  9. Slots. A list is made only in a slot, and a slot has a limit from the moment it is acquired.
//  10. Memory. Between two steps nothing keeps a snapshot but a transfer.
//
// checkInvariants, in the tests, asserts each after every step of the model, fuzz and protocol tests.
type sender struct {
	senderConfig
	// nudged holds one signal: there is work that only run does.
	nudged chan struct{}
	// outdated is set if there are commits to look at that began no flush.
	outdated atomic.Bool

	// mu guards all fields below.
	mu     sync.Mutex
	stream requestStream
	peer   *Peer
	// packer makes messages for this peer.
	packer packer
	subscriptions
	feed feed
	gate gate
	slot syncSlot
	// flushed is set once all of the current flush was answered.
	flushed bool
	outbox  outbox
	failed  error
	// unknown counts requests for types that are not served here.
	unknown int
}

func newSender(c senderConfig) *sender {
	if c.ledger == nil {
		c.ledger = tracker.NewLedger(c.now, nil)
	}
	s := &sender{
		senderConfig:  c,
		nudged:        make(chan struct{}, 1),
		subscriptions: newSubscriptions(),
		feed:          feed{durable: newSource(c.store), live: newSource(c.status)},
		slot:          syncSlot{slots: c.slots, most: c.sendTimeout},
	}
	if c.direction == exchange.GlobalToZone {
		s.gate = gate{zone: c.zone, replica: c.replica, stale: true}
	}
	s.packer = packer{senderConfig: &s.senderConfig,
		audience: exchange.Audience{Direction: c.direction, Zone: c.zone, Features: c.features}}
	return s
}

// unlock ends a section of work on the sender.
func (s *sender) unlock() {
	if s.inspect != nil {
		s.inspect(s)
	}
	s.mu.Unlock()
}

// run serves the stream until it or ctx ends. requests are those that forRun passes on.
func (s *sender) run(ctx context.Context, stream requestStream,
	requests <-chan *discovery.DeltaDiscoveryRequest) error {
	s.mu.Lock()
	defer s.unlock()
	s.stream = stream
	defer func() { s.stream = nil }()
	defer s.slot.release()
	defer s.abandon()
	for {
		news, status, err := s.step(ctx, true)
		if err != nil {
			return err
		}
		if !s.listing() {
			s.slot.release()
		}
		request, expired, err := s.wait(ctx, requests, news, status)
		switch {
		case err != nil:
			return err
		case expired:
			s.slot.release()
		case request != nil:
			if err := s.handle(request); err != nil {
				return err
			}
		}
	}
}

// wait releases the lock until there is work: a request, a slot that has expired, or something to look at.
func (s *sender) wait(ctx context.Context, requests <-chan *discovery.DeltaDiscoveryRequest, news,
	status <-chan struct{}) (request *discovery.DeltaDiscoveryRequest, expired bool, err error) {
	coming, late := s.slot.granted(), s.slot.expired()
	s.unlock()
	select {
	case request = <-requests:
	case <-news:
	case <-status:
	case <-s.nudged:
	case <-coming:
	case <-late:
		expired = true
	case <-ctx.Done():
	}
	s.mu.Lock()
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	return request, expired, nil
}

// step looks at what is new and sends what is due. The channels close when there is more. Unless patient is set, it
// does not wait for the peer, and leaves work that may.
func (s *sender) step(ctx context.Context, patient bool) (news, status <-chan struct{}, err error) {
	if s.failed != nil {
		return nil, nil, s.failed
	}
	at := position{}
	at.flush, news = s.pace.next()
	at.live, status = s.feed.live.changed()
	// Not with each answer: news since the flush goes with the next one.
	if outdated := s.outdated.Swap(false); outdated || !s.feed.looked || at != s.feed.at {
		if err := s.look(); err != nil {
			return nil, nil, err
		}
	}
	s.flushed = s.flushed && at.flush == s.feed.at.flush
	s.feed.at, s.feed.looked = at, true
	if err := s.sendReady(ctx, patient); err != nil {
		return nil, nil, err
	}
	if !s.flushed && s.idle() {
		s.pace.flushed(s, at.flush)
		s.flushed = true
	}
	return news, status, nil
}
