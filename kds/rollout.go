package kds

import (
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Rollout returns the rollout of a resource of this server's store to the zones.
func (g *Global) Rollout(r *resources.Resource) *tracker.Rollout {
	out := tracker.NewRollout(r)
	refused := g.Refused(r.Key)
	reaches := map[string]bool{}
	for _, zone := range g.Reach(r) {
		reaches[zone] = true
	}
	for _, zone := range g.Meant(r) {
		if !reaches[zone] {
			out.Zones.Disabled = append(out.Zones.Disabled, zone)
			continue
		}
		var l *tracker.Ledger
		var over *tracker.Over
		if data := g.data(zone); data != nil {
			l, over = data.ledger, data.over
		}
		out.Zones.Add(zone, r.Revision, l, refused, over, tracker.LineKey{Direction: exchange.GlobalToZone,
			Type: r.Type}, g.started)
	}
	return out
}

// Reach lists the zones that r goes to, in order.
func (g *Global) Reach(r *resources.Resource) []string {
	snapshot := g.config.Store.Snapshot()
	return g.reach(r, snapshot, func(zone string) bool { return ZoneEnabled(snapshot, zone) })
}

// Meant lists the zones that r would go to if none were disabled, in order: the proxies of a disabled zone continue
// with what they have.
func (g *Global) Meant(r *resources.Resource) []string {
	return g.reach(r, g.config.Store.Snapshot(), func(string) bool { return true })
}

func (g *Global) reach(r *resources.Resource, snapshot store.Snapshot, enabled func(zone string) bool) []string {
	here := exchange.Vantage{Enabled: enabled}
	for zone := range snapshot.List(store.Query{Type: resources.TypeZone}) {
		if enabled(zone.Name) {
			here.Zones = append(here.Zones, zone.Name)
		}
	}
	return g.filter.Reach(r, here)
}

// source returns the global, as offline or still comparing, while it is unknown whether it has a newer copy of a resource,
// or as having removed it while that removal is held, or as having sent what the store cannot take; nil once it is known
// that this copy is the newest.
func (z *Zone) source(r *resources.Resource) *tracker.RolloutOffline {
	if away := z.ledger.Absent(exchange.ReachesGlobal, z.started); away != nil {
		return away
	}
	if since, held := z.ledger.Line(exchange.GlobalToZone, r.Type, false).Holds(r.Key); held {
		return &tracker.RolloutOffline{Zone: exchange.ReachesGlobal, Since: since, Removed: true}
	}
	if since := z.ledger.Line(exchange.GlobalToZone, r.Type, false).Waiting(); !since.IsZero() {
		return &tracker.RolloutOffline{Zone: exchange.ReachesGlobal, Since: since, Waiting: true}
	}
	if z.met.hasWhole(r.Type) {
		return nil
	}
	return &tracker.RolloutOffline{Zone: exchange.ReachesGlobal, Since: z.ledger.SessionSince(), Comparing: true}
}

// Away reports whether the zone has no session with the global, and since when. A zone that has had none since it started
// has none since then.
func (z *Zone) Away() (since time.Time, away bool) {
	if absent := z.ledger.Absent(exchange.ReachesGlobal, z.started); absent != nil {
		return absent.Since, true
	}
	return time.Time{}, false
}

// Waiting reports whether changes of the global wait for this zone's store, which cannot write, and since when.
func (z *Zone) Waiting() (since time.Time, waits bool) {
	since = z.ledger.Waiting(exchange.GlobalToZone)
	return since, !since.IsZero()
}

// reported reports whether the global has what a revision of the store of volatile resources says of proxies.
func (z *Zone) reported(revision uint64) bool {
	return z.ledger.Line(exchange.ZoneToGlobal, resources.TypeDataplaneInsight, true).Reached(revision)
}

// Rollout reports whether a resource of this zone's store has reached the global. A copy of a global resource goes
// nowhere; it is known to be the newest while the global is connected.
func (z *Zone) Rollout(r *resources.Resource) *tracker.Rollout {
	out := tracker.NewRollout(r)
	if home := (resources.Home{Zone: z.config.Zone}); !home.Owns(r) {
		out.Source = z.source(r)
	}
	reached := z.filter.Reach(r, exchange.Vantage{Zone: z.config.Zone, Enabled: func(string) bool { return true }})
	if slices.Contains(reached, exchange.ReachesGlobal) {
		out.Zones.Add(exchange.ReachesGlobal, r.Revision, z.ledger, z.Refused(r.Key), z.over,
			tracker.LineKey{Direction: exchange.ZoneToGlobal, Type: r.Type}, z.started)
	}
	out.Zones.Away = nil // a global that is away has no proxies
	return out
}
