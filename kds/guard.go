package kds

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// ErrResync ends a session so that the next one compares everything.
var ErrResync = errors.New("an operator asked for a full comparison: connect again")

// Status returns the sync status with a zone, for one type or, if t is empty, for all. ok is false for a zone that has
// not connected since this server started.
func (g *Global) Status(zone string, t resources.Type) (status tracker.SyncStatus, ok bool) {
	data := g.data(zone)
	if data == nil {
		return tracker.SyncStatus{Zone: zone, Started: g.started, Types: []tracker.TypeSync{}}, false
	}
	status = data.ledger.Status(zone, t, data.refusals, g.config.Store)
	status.Over, status.Started, status.NewZoneStore = data.over.List(), g.started, data.met.status()
	if report := data.report.Load(); report != nil {
		status.Reported = report.Received
		status.HeldByZone, status.NewStore, status.Replaced = report.Held, report.NewStore, report.Replaced
	}
	return status, true
}

// Changing returns what beats when the Status of a zone may have changed, but for what the store has.
func (g *Global) Changing(zone string) *tracker.Pulse {
	if data := g.data(zone); data != nil {
		return data.pulse
	}
	return &g.first
}

// Zones lists the zones that have connected since this server started.
func (g *Global) Zones() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	zones := make([]string, 0, len(g.zones))
	for zone := range g.zones {
		zones = append(zones, zone)
	}
	slices.Sort(zones)
	return zones
}

// Statuses returns the Status of all zones that have connected since this server started.
func (g *Global) Statuses() []tracker.SyncStatus {
	var all []tracker.SyncStatus
	for _, zone := range g.Zones() {
		if status, ok := g.Status(zone, ""); ok {
			all = append(all, status)
		}
	}
	return all
}

// AcceptDeletes makes the deletions that the mass-deletion guard holds among a zone's resources; if seen is not empty,
// those of that mark.
func (g *Global) AcceptDeletes(ctx context.Context, zone string, t resources.Type, seen string) ([]tracker.Accepted, error) {
	data := g.data(zone)
	switch {
	case data == nil && seen != "":
		return nil, tracker.ErrHeldOthers
	case data == nil:
		return []tracker.Accepted{}, nil
	}
	accepted, err := data.ledger.Accept(ctx, g.config.Store, t, seen)
	if err == nil {
		err = data.met.review(ctx)
	}
	return accepted, err
}

// Resync ends a zone's session, on whatever replica it is; the next session compares everything, in both directions. It
// reports whether there was a session. Its error is the store's.
func (g *Global) Resync(ctx context.Context, zone string) (bool, error) {
	g.mu.Lock()
	data, current := g.zones[zone], g.sessions[zone]
	g.mu.Unlock()
	if current == nil && g.config.Replica != "" {
		// Whoever gets the next session has to know of it, whether there is one now or not.
		there := g.InSession(zone)
		if claimed, err := g.resyncElsewhere(ctx, zone); err != nil || claimed {
			return there && err == nil, err
		}
	}
	if data != nil {
		data.versions.forget()
	} else { // it has not connected since the start
		g.config.Versions.of(zone).forget()
	}
	if current != nil {
		current.cancel(ErrResync)
	}
	return current != nil, nil
}

// Refused lists the zones that refuse the current version of the resource under key.
func (g *Global) Refused(key resources.Key) []tracker.RefusedBy {
	if d, ok := resources.Lookup(key.Type); ok && !d.GlobalToZone && !d.AcrossZones {
		return nil // it is sent to none
	}
	g.mu.Lock()
	var out []tracker.RefusedBy
	asked := make([]*zoneData, 0, len(g.zones))
	for _, data := range g.zones {
		asked = append(asked, data)
	}
	g.mu.Unlock()
	for _, data := range asked {
		if r, ok := data.refusals.Of(key); ok {
			out = append(out, tracker.RefusedBy{Zone: data.zone, Reason: r.Reason, Since: r.Since})
		}
	}
	slices.SortFunc(out, func(a, b tracker.RefusedBy) int { return cmp.Compare(a.Zone, b.Zone) })
	return out
}

// Away returns the time since which a zone has no session, and whether it has none. The time is zero for a zone that
// has had no session since this server started.
func (g *Global) Away(zone string) (since time.Time, away bool) {
	data := g.data(zone)
	if data == nil {
		return time.Time{}, true
	}
	return data.ledger.Away()
}

// Late returns since when a zone has not acknowledged all changes of some types; zero if it has.
func (g *Global) Late(zone string, types ...resources.Type) (since time.Time) {
	if data := g.data(zone); data != nil {
		return data.ledger.Late(exchange.GlobalToZone, types...)
	}
	return time.Time{}
}

// Doubt records that this server does not hear the other replicas any more, and so nothing of the zones that have no
// session here, and why. Zones of which known returns true are left out; nil leaves out none. known must not block.
func (g *Global) Doubt(now time.Time, why string, known func(zone string) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for zone, data := range g.zones {
		if g.sessions[zone] == nil && (known == nil || !known(zone)) {
			data.ledger.Doubt(now, why)
		}
	}
}

// Unheard reports whether it is unknown if a zone has a session: another replica had it, and is not heard of.
func (g *Global) Unheard(zone string) bool {
	data := g.data(zone)
	return data != nil && data.ledger.Unheard()
}

// WhyUnheard returns why it is unknown if a zone has a session; empty if it is known.
func (g *Global) WhyUnheard(zone string) string {
	data := g.data(zone)
	if data == nil {
		return ""
	}
	return data.ledger.WhyUnheard()
}

// Started returns the time from which on this server can know of zones.
func (g *Global) Started() time.Time { return g.started }

func (g *Global) data(zone string) *zoneData {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.zones[zone]
}

// Status returns the sync status with the global, for one type or, if t is empty, for all.
func (z *Zone) Status(t resources.Type) tracker.SyncStatus {
	status := z.ledger.Status(z.config.Zone, t, z.refusals, z.config.Store)
	status.NewStore, status.Replaced, status.Over, status.Started = z.met.status(), z.met.replacement(),
		z.over.List(), z.started
	return status
}

// Changing returns what beats when the Status may have changed, but for what the store has.
func (z *Zone) Changing() *tracker.Pulse { return z.pulse }

// AcceptDeletes makes the deletions that the mass-deletion guard holds among the global's resources; if seen is not
// empty, those of that mark.
func (z *Zone) AcceptDeletes(ctx context.Context, t resources.Type, seen string) ([]tracker.Accepted, error) {
	accepted, err := z.ledger.Accept(ctx, z.config.Store, t, seen)
	if err == nil {
		err = z.met.review(ctx)
	}
	z.news.wake()
	return accepted, err
}

// Refused returns the global's refusal of the current version of the resource under key; nil if there is none.
func (z *Zone) Refused(key resources.Key) []tracker.RefusedBy {
	if r, ok := z.refusals.Of(key); ok {
		return []tracker.RefusedBy{{Reason: r.Reason, Since: r.Since}}
	}
	return nil
}

// Resync ends the session with the global; the next one compares everything, in both directions. It reports whether
// there was one.
func (z *Zone) Resync() bool {
	z.versions.forget()
	current := z.current.Load()
	if current != nil {
		current.cancel(ErrResync)
	}
	return current != nil
}
