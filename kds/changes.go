package kds

import (
	"errors"

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

// feed is how far a stream has read the changelogs of the stores that it sends from.
type feed struct {
	// durable and live are the stores; live has none if there is no live status.
	durable, live source
	// at is the position of the last look; looked is set once there was one.
	at     position
	looked bool
}

// position is a flush of the durable store and a revision of the live one.
type position struct{ flush, live uint64 }

// of returns the store that a type is sent from.
func (f *feed) of(t resources.Type) *source {
	if f.live.store != nil && isLive(t) {
		return &f.live
	}
	return &f.durable
}

// look reads the commits since the last call and marks the types that they concern. It ends the stream of a zone that
// may be sent nothing more, and of one that never answers.
func (s *sender) look() error {
	fresh := s.lookAt(&s.feed.durable)
	if s.feed.live.store != nil && s.lookAt(&s.feed.live) {
		fresh = true
	}
	if !fresh {
		return nil
	}
	return errors.Join(s.gate.check(s.store), s.checkAnswers())
}

// fewCommits is how many commits a stream reads one by one. Of more, it reads those that are not bookkeeping: when many
// zones connect, each of them is a few commits that no other stream needs, and reading all costs their square.
const fewCommits = 8

// lookAt is look for one store. It reports whether there were new commits.
func (s *sender) lookAt(from *source) bool {
	now := from.store.Snapshot().Revision()
	if now-from.seen <= fewCommits {
		if commits, ok := from.store.Changes(from.seen); ok {
			s.note(from, commits)
			return len(commits) > 0
		}
	}
	// What is skipped can concern only the gate.
	s.gate.stale = true
	if commits, ok := from.store.Notable(from.seen); ok {
		s.note(from, commits)
	} else {
		for _, sub := range s.order {
			if sub.source == from {
				sub.dirty = true // its own cursor is older still, and fold will report that
			}
		}
	}
	from.seen = max(from.seen, now)
	return true
}

// note marks the types that commits of a store concern.
func (s *sender) note(from *source, commits []*store.Commit) {
	for _, c := range commits {
		s.gate.note(c)
		for _, sub := range s.order {
			if sub.source != from || sub.dirty || !concerns(s.direction, sub.descriptor, c) {
				continue
			}
			sub.dirty, sub.noticed = true, s.now()
			if sub.inflight == nil && !sub.full {
				sub.cursor = max(sub.cursor, from.seen)
			}
		}
		from.seen = c.Revision
	}
}

// concerns reports whether a commit can change what a peer gets of a type.
func concerns(direction exchange.Direction, of *resources.Descriptor, c *store.Commit) bool {
	for i := range c.Changes {
		switch c.Changes[i].Key().Type {
		case of.Type:
			return true
		case resources.TypeZone:
			// A zone that is created or deleted matters to the others only when it begins or ceases to take part.
			if direction == exchange.GlobalToZone && of.AcrossZones &&
				takesPart(c.Changes[i].Old) != takesPart(c.Changes[i].New) {
				return true
			}
		}
	}
	return false
}
