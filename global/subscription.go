package global

import (
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
)

// subscription is one session.
type subscription struct {
	session                 uint64
	zone                    *zoneInsight
	connected, disconnected time.Time
	updated                 time.Time
	peer                    *kds.Peer
	// types are in order of arrival. latest is the index of the one counted last, which is usually counted next.
	types  []counters
	latest int
}

// counters counts the messages of one type.
type counters struct {
	typ                          resources.Type
	sent, acknowledged, rejected uint64
}

func (s *subscription) count(e kds.Event) {
	c := s.counters(e.Type)
	switch e.Kind {
	case kds.Sent:
		c.sent++
	case kds.Acknowledged:
		c.acknowledged++
	case kds.Rejected:
		c.rejected++
	}
	s.updated = e.Time
}

// counters finds or adds the counters of a type. There are at most as many as the registry has types.
func (s *subscription) counters(t resources.Type) *counters {
	if s.latest < len(s.types) && s.types[s.latest].typ == t {
		return &s.types[s.latest]
	}
	s.latest = slices.IndexFunc(s.types, func(c counters) bool { return c.typ == t })
	if s.latest < 0 {
		s.latest = len(s.types)
		s.types = append(s.types, counters{typ: t})
	}
	return &s.types[s.latest]
}
