package kds

import (
	"context"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
)

// What is here spares the stream's goroutine being woken: an answer is handled by the goroutine that read it, and a wave by the one
// that made it. Neither may wait for a peer, nor for the stream's goroutine, which may be waiting for one.

// left yields the requests that take leaves to run.
func (s *sender) left(receive func() (*discovery.DeltaDiscoveryRequest, error)) func() (*discovery.DeltaDiscoveryRequest, error) {
	return func() (*discovery.DeltaDiscoveryRequest, error) {
		for {
			request, err := receive()
			if err != nil || !s.take(request) {
				return request, err
			}
		}
	}
}

// take handles an answer, and sends what waited for it. It reports false for what run has to handle.
func (s *sender) take(request *discovery.DeltaDiscoveryRequest) bool {
	if request.GetResponseNonce() == "" || !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	if s.stream == nil || s.peer == nil || s.named(request.GetNode()) != nil {
		return false
	}
	s.answered(s.types[resources.Type(request.GetTypeUrl())], request)
	s.proceed()
	return true
}

// hear looks at a wave, and sends what is new. A panic in it is this stream's, and not of those that hear after it.
func (s *sender) hear() {
	defer s.endOnPanic()
	if !s.mu.TryLock() {
		s.nudge()
		return
	}
	defer s.mu.Unlock()
	s.proceed()
}

// endOnPanic, deferred, ends the session when what was done for it panicked.
func (s *sender) endOnPanic() {
	if s.panics == nil {
		return
	}
	if reason := recover(); reason != nil {
		s.panics.Caught(serving, reason)
		s.session.cancel(panics.Err)
	}
}

// proceed does what cannot have to wait, and leaves the rest, as all that has to do with lists, to run. s.mu is held.
func (s *sender) proceed() {
	if s.stream != nil && s.failed == nil && s.unsent == nil && s.turn.ready == nil && !s.listing() {
		if _, _, s.failed = s.step(context.Background(), false); s.failed == nil && s.unsent == nil && !s.listing() {
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
