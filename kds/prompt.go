package kds

import (
	"context"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
)

// The functions here spare waking the stream's goroutine: the goroutine that reads an answer handles it, and the one
// that begins a flush notifies the senders. Neither may wait for a peer, nor for the stream's goroutine, which may be
// waiting for one.

// forRun returns a function that receives the requests that run must handle: all that tryAnswer does not. receive is the
// stream's RecvMsg.
func (s *sender) forRun(receive func(any) error) func() (*discovery.DeltaDiscoveryRequest, error) {
	into := &arrival{inventories: s.encoder.inventories}
	return func() (*discovery.DeltaDiscoveryRequest, error) {
		for {
			request := &into.request
			if err := receive(into); err != nil {
				return nil, err
			}
			if err := checkRequest(request, s.encoder.inventories); err != nil {
				return nil, err
			}
			if !s.tryAnswer(request) {
				into = &arrival{inventories: s.encoder.inventories}
				return request, nil
			}
			request.Reset() // the next may be long in coming
		}
	}
}

// tryAnswer handles an answer and sends what waited for it, and keeps nothing of the request. It returns false for
// requests that run must handle.
func (s *sender) tryAnswer(request *discovery.DeltaDiscoveryRequest) bool {
	if request.GetResponseNonce() == "" || !s.mu.TryLock() {
		return false
	}
	defer s.unlock()
	if s.stream == nil || s.peer == nil || s.named(request.GetNode()) != nil {
		return false
	}
	s.answered(s.types[resources.Type(request.GetTypeUrl())], request)
	s.proceed()
	return true
}

// notify looks at a flush and sends what is new. A panic in it ends this stream only; the others still hear of it.
func (s *sender) notify() {
	defer s.endOnPanic()
	if !s.mu.TryLock() {
		s.nudge()
		return
	}
	defer s.unlock()
	s.proceed()
}

// reconsider implements watcher.
func (s *sender) reconsider() {
	s.outdated.Store(true)
	s.notify()
}

// endOnPanic, deferred, ends the session if its work panicked.
func (s *sender) endOnPanic() {
	if s.panics == nil {
		return
	}
	if reason := recover(); reason != nil {
		s.panics.Caught(serving, reason)
		s.session.cancel(panics.Err)
	}
}

// proceed does what cannot block, and leaves the rest, and all that concerns lists, to run. The caller holds s.mu.
func (s *sender) proceed() {
	if s.stream != nil && s.failed == nil && s.outbox.unsent == nil && s.slot.ready == nil && !s.listing() {
		if _, _, s.failed = s.step(context.Background(), false); s.failed == nil && s.outbox.unsent == nil && !s.listing() {
			return
		}
	}
	s.nudge()
}

func (s *sender) nudge() {
	select {
	case s.nudged <- struct{}{}:
	default:
	}
}
