package kds

import (
	"context"
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/panics"
)

// promptBytes may be unanswered in a stream without a send blocking: gRPC buffers 64 KiB of a stream's messages before
// it blocks on unread ones, and the peer has read what it answered.
const promptBytes = 32 << 10

// sendWithin sends m and waits until it is sent: for the timeout, and longer while the peer accepts waiting data. If it
// fails, the caller must end the stream, which also ends the send that still runs: gRPC blocks while the peer does not
// read.
func sendWithin[M any](ctx context.Context, timeout time.Duration, over *transport, guard *panics.Guard,
	send func(M) error, m M) error {
	sent := make(chan error, 1)
	go func() { sent <- guard.Do(serving, func() error { return send(m) }) }()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	then := over.look()
	for {
		select {
		case err := <-sent:
			return err
		case <-timer.C:
			now := over.look()
			if !now.moved(then, timeout) {
				return fmt.Errorf("%w: nothing went through for %s", ErrSendTimeout, timeout)
			}
			then = now
			timer.Reset(timeout)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// receiveAll passes messages to in until the stream or ctx ends, and returns the reason.
func receiveAll[M any](ctx context.Context, receive func() (M, error), in chan<- M) error {
	for {
		m, err := receive()
		if err != nil {
			return err
		}
		select {
		case in <- m:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// outbox holds the next message of a stream.
type outbox struct {
	nonces nonces
	// unsent is a message in flight that only the stream's goroutine may send.
	unsent *unsent
	// begun is the transfer that next begins, until its message is in flight.
	begun transfer
}

// unsent is a message that is in flight but not sent yet.
type unsent struct {
	sub     *subscription
	message *response
}

// sendReady sends one message of every type that has something to send and no message in flight.
func (s *sender) sendReady(ctx context.Context, patient bool) error {
	if m := s.outbox.unsent; m != nil && patient {
		s.outbox.unsent = nil
		if err := s.send(ctx, m.sub, m.message); err != nil {
			return err
		}
	}
	for _, sub := range s.order {
		// More than once if a change turns out to need a list.
		for s.outbox.unsent == nil && s.due(sub, patient) {
			m, err := s.next(sub)
			switch {
			case err != nil:
				return err
			case m == nil:
			case !patient && !s.prompt():
				s.outbox.unsent = &unsent{sub, m}
			default:
				err = s.send(ctx, sub, m)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// due reports whether the type's next message may be made. A list can take long and needs a slot, which only run gives
// up again.
func (s *sender) due(sub *subscription, patient bool) bool {
	return sub.inflight == nil && sub.dirty && (!sub.lists() || patient && s.slot.acquired())
}

// send sends a message that is already in flight. A message that gRPC accepts at once needs no timeout, which would
// cost a goroutine for each message of each zone.
func (s *sender) send(ctx context.Context, sub *subscription, m *response) error {
	var err error
	if s.prompt() {
		err = s.stream.SendMsg(m)
	} else {
		err = sendWithin(ctx, s.sendTimeout, s.session.transport, s.panics, s.stream.SendMsg, any(m))
	}
	if err != nil {
		return err
	}
	sub.line.Sent(sub.inflight.revision, sub.inflight.sent)
	s.session.observe(Event{Kind: Sent, Time: sub.inflight.sent, Direction: s.direction, Type: sub.descriptor.Type,
		Resources: len(m.resources), Removed: len(m.removed), Bytes: sub.inflight.size, Revision: sub.inflight.revision})
	return nil
}

// message starts a response. control_plane and nonce are as in Kuma's wire format, "Exchange sequence". A nonce is
// unguessable: a peer that answered what it has not read would make prompt wrong, and other streams would wait for its
// own.
func (s *sender) message(typeURL string, p progress) *response {
	m := &response{typeURL: typeURL, nonce: s.outbox.nonces.next(), identifier: s.identifier}
	if s.packer.audience.Features.Has(exchange.FeatureParts) {
		m.version = p.String()
	}
	return m
}
