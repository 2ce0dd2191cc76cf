package global

import (
	"cmp"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// presence shows the status store. A zone's status of its proxies counts while the zone is connected. For a
// disconnected zone it is unknown, so its proxies count as disconnected since then. The store keeps the zone's status:
// if nothing has changed when it reconnects, nothing is sent again.
type presence struct {
	store.Reader
	sync whereabouts
}

// whereabouts is implemented by kds.Global.
type whereabouts interface {
	Away(zone string) (since time.Time, away bool)
	Unheard(zone string) bool
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
	if q.Type != resources.TypeDataplaneInsight && q.Type != resources.TypeZoneInsight {
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

// shown returns r. Its connections are ended if its zone is disconnected or, for the zone itself, if its status is
// unknown. It returns an unreadable insight unchanged.
func (p *presence) shown(r *resources.Resource) *resources.Resource {
	if r == nil {
		return nil
	}
	switch r.Type {
	case resources.TypeDataplaneInsight:
		if since, away := p.sync.Away(r.Zone()); away && r.Zone() != "" {
			return ended(r, func(s *meshpb.DataplaneInsight) {
				for _, one := range s.GetSubscriptions() {
					one.DisconnectTime = cmp.Or(one.GetDisconnectTime(), timestamppb.New(since))
				}
			})
		}
	case resources.TypeZoneInsight:
		if since, _ := p.sync.Away(r.Name); p.sync.Unheard(r.Name) {
			return ended(r, func(s *systempb.ZoneInsight) {
				for _, one := range s.GetSubscriptions() {
					one.DisconnectTime = cmp.Or(one.GetDisconnectTime(), timestamppb.New(since))
				}
			})
		}
	}
	return r
}

// ended returns a copy of r with a spec changed by end.
func ended[S any, P interface {
	*S
	proto.Message
}](r *resources.Resource, end func(P)) *resources.Resource {
	spec, err := resources.SpecAs[S](r)
	if err != nil {
		return r
	}
	changed := proto.Clone(P(spec)).(P)
	end(changed)
	out := r.Clone()
	if out.Spec, err = resources.NewSpecOf(r.Type, changed); err != nil {
		return r
	}
	return out
}

// absent returns since when and why a zone's state is unknown, or nil while it has a session.
func absent(sync *kds.Global, zone string) *api.Unknown {
	since, away := sync.Away(zone)
	switch {
	case !away:
		return nil
	case sync.Unheard(zone):
		return &api.Unknown{Since: since.UTC(),
			Reason: "of zone " + zone + " nothing is heard: " + sync.WhyUnheard(zone)}
	case since.IsZero():
		return &api.Unknown{Since: sync.Started().UTC(), Reason: "zone " + zone + " has not connected since this server started"}
	}
	return &api.Unknown{Since: since.UTC(), Reason: "zone " + zone + " is offline", Known: true}
}
