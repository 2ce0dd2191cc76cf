package global

import (
	"iter"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
)

// presence is the status store as it is shown. A zone's status of its proxies counts while the zone is connected. For a
// disconnected zone it is unknown, so its proxies count as disconnected since then. The store keeps the zone's status:
// if nothing has changed when it reconnects, nothing is sent again.
type presence struct {
	store.Reader
	// away returns the time since which a zone has no session, and whether it has none.
	away func(zone string) (since time.Time, away bool)
}

// Snapshot implements store.Reader.
func (p *presence) Snapshot() store.Snapshot {
	return &presenceSnapshot{Snapshot: p.Reader.Snapshot(), presence: p}
}

type presenceSnapshot struct {
	store.Snapshot
	presence *presence
}

// Get implements store.Snapshot.
func (s *presenceSnapshot) Get(key resources.Key) *resources.Resource {
	return s.presence.shown(s.Snapshot.Get(key))
}

// List implements store.Snapshot.
func (s *presenceSnapshot) List(q store.Query) iter.Seq[*resources.Resource] {
	if q.Type != resources.TypeDataplaneInsight {
		return s.Snapshot.List(q)
	}
	return func(yield func(*resources.Resource) bool) {
		for r := range s.Snapshot.List(q) {
			if !yield(s.presence.shown(r)) {
				return
			}
		}
	}
}

// shown returns r, with its connections ended if its zone is disconnected. An unreadable insight is returned as it is.
func (p *presence) shown(r *resources.Resource) *resources.Resource {
	if r == nil || r.Type != resources.TypeDataplaneInsight || r.Zone() == "" {
		return r
	}
	since, away := p.away(r.Zone())
	if !away {
		return r
	}
	spec, err := resources.SpecAs[meshpb.DataplaneInsight](r)
	if err != nil {
		return r
	}
	ended := proto.Clone(spec).(*meshpb.DataplaneInsight)
	for _, s := range ended.GetSubscriptions() {
		if s.GetDisconnectTime() == nil {
			s.DisconnectTime = timestamppb.New(since)
		}
	}
	out := r.Clone()
	if out.Spec, err = resources.NewSpecOf(r.Type, ended); err != nil {
		return r
	}
	return out
}
