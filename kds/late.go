package kds

import (
	"fmt"
	"time"
)

// late is a look at the transport of a peer whose answer is late.
type late struct {
	seen traffic
	at   time.Time
}

// checkAnswers ends a stream whose peer reads but never answers. It runs when there is news, so it needs no timer.
func (s *sender) checkAnswers() error {
	for _, sub := range s.order {
		m := sub.inflight
		if m != nil && s.now().Sub(later(m.sent, m.heard)) > s.answerTimeout && !s.reading(m) {
			return fmt.Errorf("%w: %s, nonce %s", ErrNoAnswer, sub.descriptor.Type, sub.inflight.nonce)
		}
	}
	return nil
}

// reading reports whether the peer may still be reading the message: its transport makes progress between two looks
// that are the send timeout apart.
func (s *sender) reading(m *inflight) bool {
	now := s.session.transport.look()
	if !now.waits {
		// What waited at the last look was taken since then: the answer is due from now on.
		waited := m.late != nil
		if waited {
			m.late, m.heard = nil, s.now()
		}
		return waited
	}
	if m.late == nil {
		m.late = &late{now, s.now()}
		return true
	}
	since := s.now().Sub(m.late.at)
	if since < s.sendTimeout {
		return true
	}
	if !now.moved(m.late.seen, since) {
		return false
	}
	m.late, m.heard = &late{now, s.now()}, s.now()
	return true
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
