package kds

import (
	"errors"
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// source is a store that a stream is sent from.
type source struct {
	store store.Reader
	// seen is the revision up to which commits have been looked at.
	seen uint64
}

func newSource(s store.Reader) source {
	if s == nil {
		return source{}
	}
	return source{store: s, seen: s.Snapshot().Revision()}
}

// changed is the store's Changed; without a store nothing ever comes.
func (s *source) changed() (revision uint64, next <-chan struct{}) {
	if s.store == nil {
		return 0, nil
	}
	return s.store.Changed()
}

// isLive reports whether nothing of a type is durable where it is made.
func isLive(t resources.Type) bool { return t == resources.TypeDataplaneInsight }

// look reads the commits since the last time and marks the types that they concern.
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

// lookAt is look for one store. It reports whether there was something new.
func (s *sender) lookAt(from *source) bool {
	commits, ok := from.store.Changes(from.seen)
	if !ok {
		from.seen, s.judge = from.store.Snapshot().Revision(), true
		for _, sub := range s.order {
			if sub.source == from {
				sub.dirty = true // its own cursor is even older, and fold will say so
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

// isOfZone reports whether a commit changed what is stored of the zone itself, or which replica has it.
func (s *sender) isOfZone(c *store.Commit) bool {
	for i := range c.Changes {
		if key := c.Changes[i].Key(); (key.Type == resources.TypeZone || key.Type == resources.TypeZoneClaim) && key.Name == s.zone {
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
			// A zone that comes or goes is nothing to the others until it begins or ceases to take part.
			if s.direction == exchange.GlobalToZone && sub.descriptor.AcrossZones && takesPart(c.Changes[i].Old) != takesPart(c.Changes[i].New) {
				return true
			}
		}
	}
	return false
}

// checkZone ends the stream of a zone that was disabled or deleted, or that another replica has now.
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

// isEnabled reports whether the zone is enabled: as of what was last looked at, where nothing was written since.
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

// checkAnswers ends a stream whose peer reads but never answers. It looks when there is news, so it needs no timer.
func (s *sender) checkAnswers() error {
	for _, sub := range s.order {
		m := sub.inflight
		if m != nil && s.now().Sub(later(m.sent, m.heard)) > s.answerTimeout && !s.reading(m) {
			return fmt.Errorf("%w: %s, nonce %s", ErrNoAnswer, sub.descriptor.Type, sub.inflight.nonce)
		}
	}
	return nil
}

// reading reports whether the peer may be at the message still: it takes what waits for it, as far as can be told by two looks that are
// the send timeout apart.
func (s *sender) reading(m *inflight) bool {
	now := s.session.transport.look()
	if !now.waits {
		return false
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
