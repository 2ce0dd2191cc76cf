package xds

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/causeway-mesh/causeway/resources/store"
)

// causes tracks changes until the proxy answers, by kind. session.mu guards it.
type causes struct {
	// due is the cause of changes that are published but not yet in a response.
	due [kinds]*store.Cause
	// sent is the cause of the response that the proxy has not answered yet.
	sent [kinds]sentCause
}

// sentCause has no cause if there is no change to track.
type sentCause struct {
	cause *store.Cause
	steps store.Steps
}

// expect notes that a change to a kind was published, before the stream is woken. The cause is shared and immutable;
// nil if there is none.
func (s *session) expect(k kind, cause *store.Cause) {
	if cause == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inliner != nil && k == kindExtension {
		k = kindListener // such a stream gets filters within its listeners
	}
	s.causes.due[k] = joined(s.causes.due[k], cause)
}

// joined returns one cause for what follows from both; a may be nil.
func joined(a, b *store.Cause) *store.Cause {
	if a == nil {
		return b
	}
	both := *a
	both.Join(b)
	return &both
}

// leaveLocked notes that a response of the kind is sent.
func (s *session) leaveLocked(k kind) {
	due := s.causes.due[k]
	if due == nil {
		return
	}
	s.causes.due[k] = nil
	sent := &s.causes.sent[k]
	sent.cause = joined(sent.cause, due) // the answer to this one also answers an earlier unanswered one
	if s.proxies.cfg.Tracer != nil && len(due.Traces) > 0 {
		sent.steps = append(sent.steps, due.Start(s.proxies.cfg.Tracer, "xds push", attribute.String("type", k.String()),
			attribute.String("mesh", s.proxy.key.Mesh), attribute.String("name", s.proxy.key.Name))...)
	}
}

// arrived notes the proxy's answer; problem is its reason if it refused.
func (s *session) arrived(k kind, problem string) {
	s.mu.Lock()
	answered := s.causes.sent[k]
	s.causes.sent[k] = sentCause{}
	s.mu.Unlock()
	if answered.cause == nil {
		return
	}
	if problem == "" && !answered.cause.Written.IsZero() {
		s.proxies.metrics.propagation.Observe(max(time.Since(answered.cause.Written), 0).Seconds())
	}
	answered.steps.End(problem)
}

// abandon ends the steps of the responses that the proxy left unanswered.
func (s *session) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.causes.sent {
		s.causes.sent[k].steps.End("the stream ended before the answer")
		s.causes.sent[k] = sentCause{}
	}
}
