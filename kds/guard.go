package kds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Accepted is what an operator's word on held deletions removed.
type Accepted struct {
	Type  resources.Type `json:"type"`
	Count int            `json:"count"`
}

// accept removes the copies whose removal is held, of one type or, when t is empty, of all. A copy that changed since, or
// came back, stays. It returns ErrConflict's error when somebody wrote in between: ask again.
func (l *ledger) accept(ctx context.Context, s store.Store, t resources.Type) ([]Accepted, error) {
	done := []Accepted{}
	for _, d := range resources.Descriptors() {
		if t != "" && d.Type != t {
			continue
		}
		for _, way := range []exchange.Direction{exchange.GlobalToZone, exchange.ZoneToGlobal} {
			l.mu.Lock()
			n := l.lines[lineKey{way, d.Type}]
			l.mu.Unlock()
			if n == nil {
				continue
			}
			count, err := n.accept(ctx, s)
			if err != nil {
				return done, err
			}
			if count > 0 {
				done = append(done, Accepted{Type: d.Type, Count: count})
			}
		}
	}
	return done, nil
}

func (n *line) accept(ctx context.Context, s store.Store) (int, error) {
	waiting := n.holds()
	if len(waiting.keys) == 0 {
		return 0, nil
	}
	var b store.Batch
	snapshot := s.Snapshot()
	for key, revision := range waiting.keys {
		if r := snapshot.Get(key); r != nil && r.Revision == revision {
			b.Ops = append(b.Ops, store.Op{Delete: key, If: store.IfRevision(revision)})
		}
	}
	if len(b.Ops) > 0 {
		if _, err := s.Apply(ctx, b); err != nil {
			return 0, err
		}
	}
	for key := range waiting.keys {
		n.release(key)
	}
	return len(b.Ops), nil
}

// ErrResync ends a session so that the next one compares everything.
var ErrResync = errors.New("an operator asked for a full comparison: connect again")

// Status tells how the sync with a zone stands, for one type or, when t is empty, for all. ok is false for a zone that
// has not connected since this server started.
func (g *Global) Status(zone string, t resources.Type) (status SyncStatus, ok bool) {
	data := g.data(zone)
	if data == nil {
		return SyncStatus{Zone: zone, Started: g.started, Types: []TypeSync{}}, false
	}
	status = data.ledger.status(zone, t, data.refusals, g.config.Store)
	status.Over, status.Started = data.over.list(), g.started
	if report := data.report.Load(); report != nil {
		status.Reported = report.Received
		status.HeldByZone, status.NewStore, status.Replaced = report.Held, report.NewStore, report.Replaced
	}
	return status, true
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

// Statuses is Status of all zones that have connected since this server started.
func (g *Global) Statuses() []SyncStatus {
	var all []SyncStatus
	for _, zone := range g.Zones() {
		if status, ok := g.Status(zone, ""); ok {
			all = append(all, status)
		}
	}
	return all
}

// AcceptDeletes removes what the mass-deletion guard holds of what a zone wrote.
func (g *Global) AcceptDeletes(ctx context.Context, zone string, t resources.Type) ([]Accepted, error) {
	data := g.data(zone)
	if data == nil {
		return []Accepted{}, nil
	}
	return data.ledger.accept(ctx, g.config.Store, t)
}

// Resync ends a zone's session, on whatever replica it is; the next one compares everything, both ways. It reports whether there was
// one. The error is the store's.
func (g *Global) Resync(ctx context.Context, zone string) (bool, error) {
	g.mu.Lock()
	data, current := g.zones[zone], g.sessions[zone]
	g.mu.Unlock()
	if current == nil && g.config.Replica != "" && g.InSession(zone) {
		return g.resyncElsewhere(ctx, zone)
	}
	if data != nil {
		data.known.forget()
	}
	if current != nil {
		current.cancel(ErrResync)
	}
	return current != nil, nil
}

// RefusedBy is a zone that does not take a resource.
type RefusedBy struct {
	// Zone is empty for the global.
	Zone   string
	Reason string
	Since  time.Time
}

// Refused lists the zones that do not take the resource under key, in its present version.
func (g *Global) Refused(key resources.Key) []RefusedBy {
	g.mu.Lock()
	var out []RefusedBy
	var asked []*zoneData
	for _, data := range g.zones {
		asked = append(asked, data)
	}
	g.mu.Unlock()
	for _, data := range asked {
		if r, ok := data.refusals.of(key); ok {
			out = append(out, RefusedBy{Zone: data.zone, Reason: r.Reason, Since: r.Since})
		}
	}
	slices.SortFunc(out, func(a, b RefusedBy) int { return cmp.Compare(a.Zone, b.Zone) })
	return out
}

// Away tells since when a zone has no session, and whether that is so. The time is zero for one that has had none since
// this server started.
func (g *Global) Away(zone string) (since time.Time, away bool) {
	data := g.data(zone)
	if data == nil {
		return time.Time{}, true
	}
	data.ledger.mu.Lock()
	defer data.ledger.mu.Unlock()
	return data.ledger.since, !data.ledger.connected
}

// Started is since when this server can know of zones.
func (g *Global) Started() time.Time { return g.started }

func (g *Global) data(zone string) *zoneData {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.zones[zone]
}

// Status tells how the sync with the global stands, for one type or, when t is empty, for all.
func (z *Zone) Status(t resources.Type) SyncStatus {
	status := z.ledger.status(z.config.Zone, t, z.refusals, z.config.Store)
	status.NewStore, status.Replaced, status.Over, status.Started = z.met.status(), z.met.told(), z.over.list(), z.started
	return status
}

// AcceptDeletes removes what the mass-deletion guard holds of what the global sent.
func (z *Zone) AcceptDeletes(ctx context.Context, t resources.Type) ([]Accepted, error) {
	accepted, err := z.ledger.accept(ctx, z.config.Store, t)
	if err == nil {
		err = z.met.review(ctx)
	}
	z.news.wake()
	return accepted, err
}

// Refused reports whether the global does not take the resource under key, in its present version.
func (z *Zone) Refused(key resources.Key) []RefusedBy {
	if r, ok := z.refusals.of(key); ok {
		return []RefusedBy{{Reason: r.Reason, Since: r.Since}}
	}
	return nil
}

// Resync ends the session with the global; the next one compares everything, both ways. It reports whether there was one.
func (z *Zone) Resync() bool {
	z.known.forget()
	current := z.current.Load()
	if current != nil {
		current.cancel(ErrResync)
	}
	return current != nil
}

// TypesOf lists the types of a status, once each, as the answer to a resync.
func TypesOf(s SyncStatus) []Accepted {
	types := []Accepted{}
	for _, one := range s.Types {
		if !slices.ContainsFunc(types, func(a Accepted) bool { return a.Type == one.Type }) {
			types = append(types, Accepted{Type: one.Type})
		}
	}
	return types
}

// Conditions says in the words of `status.conditions` who does not take a resource; nil when everybody does.
func Conditions(refused []RefusedBy) []resources.Condition {
	if len(refused) == 0 {
		return nil
	}
	lines := make([]string, 0, len(refused))
	for i, by := range refused {
		if i == maxConditionLines {
			lines = append(lines, fmt.Sprintf("and %d more", len(refused)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s, since %s: %s", cmp.Or(by.Zone, "the global"), by.Since.UTC().Format(time.RFC3339), by.Reason))
	}
	return []resources.Condition{{Type: resources.ConditionSynced, Status: resources.ConditionFalse, Reason: "Refused", Message: strings.Join(lines, "\n")}}
}

// maxConditionLines bounds how many zones a condition names.
const maxConditionLines = 20
