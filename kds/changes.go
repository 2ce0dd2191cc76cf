package kds

import (
	"errors"
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// source is a store that a stream sends from.
type source struct {
	store store.Reader
	// seen is the revision up to which the stream has read commits.
	seen uint64
}

func newSource(s store.Reader) source {
	if s == nil {
		return source{}
	}
	return source{store: s, seen: s.Snapshot().Revision()}
}

// changed returns the store's Changed. Without a store the channel is nil and never closes.
func (s *source) changed() (revision uint64, next <-chan struct{}) {
	if s.store == nil {
		return 0, nil
	}
	return s.store.Changed()
}

// isLive reports whether resources of a type are volatile on the server that makes them.
func isLive(t resources.Type) bool { return t == resources.TypeDataplaneInsight }

// look reads the commits since the last call and marks the types that they concern.
func (s *sender) look() error {
	fresh := s.lookAt(&s.durable)
	if s.live.store != nil && s.lookAt(&s.live) {
		fresh = true
	}
	if !fresh {
		return nil
	}
	return errors.Join(s.checkZone(), s.checkAnswers())
}

// lookAt is look for one store. It reports whether there were new commits.
func (s *sender) lookAt(from *source) bool {
	commits, ok := from.store.Changes(from.seen)
	if !ok {
		from.seen, s.judge = from.store.Snapshot().Revision(), true
		for _, sub := range s.order {
			if sub.source == from {
				sub.dirty = true // its own cursor is older still, and fold will report that
			}
		}
		return true
	}
	for _, c := range commits {
		s.judge = s.judge || s.isOfZone(c)
		for _, sub := range s.order {
			if sub.source != from || sub.dirty || !s.concerns(sub, c) {
				continue
			}
			sub.dirty, sub.noticed = true, s.now()
			if sub.inflight == nil && !sub.full {
				sub.cursor = max(sub.cursor, from.seen)
			}
		}
		from.seen = c.Revision
	}
	return len(commits) > 0
}

// isOfZone reports whether a commit changed the zone's own resource or its claim.
func (s *sender) isOfZone(c *store.Commit) bool {
	for i := range c.Changes {
		if key := c.Changes[i].Key(); (key.Type == resources.TypeZone || key.Type == resources.TypeZoneClaim) &&
			key.Name == s.zone {
			return true
		}
	}
	return false
}

// concerns reports whether a commit can change what the peer gets of the type.
func (s *sender) concerns(sub *subscription, c *store.Commit) bool {
	for i := range c.Changes {
		switch c.Changes[i].Key().Type {
		case sub.descriptor.Type:
			return true
		case resources.TypeZone:
			// A zone that is created or deleted matters to the others only when it begins or ceases to take part.
			if s.direction == exchange.GlobalToZone && sub.descriptor.AcrossZones &&
				takesPart(c.Changes[i].Old) != takesPart(c.Changes[i].New) {
				return true
			}
		}
	}
	return false
}

// checkZone ends the stream if the zone was disabled or deleted, or if another replica holds its claim.
func (s *sender) checkZone() error {
	if s.direction != exchange.GlobalToZone || !s.judge {
		return nil
	}
	s.judge = false
	snapshot := s.store.Snapshot()
	zone := snapshot.Get(ZoneKey(s.zone))
	enabled := zone != nil && takesPart(zone)
	s.enabled = &enabled
	if !enabled {
		return ErrZoneDisabled
	}
	return lost(snapshot, s.replica, s.zone)
}

// isEnabled reports whether the zone is enabled. It uses the last result unless the store has newer commits.
func (s *sender) isEnabled(now store.Snapshot) bool {
	if now.Revision() > s.durable.seen {
		return ZoneEnabled(now, s.zone)
	}
	if s.enabled == nil {
		enabled := ZoneEnabled(now, s.zone)
		s.enabled = &enabled
	}
	return *s.enabled
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
