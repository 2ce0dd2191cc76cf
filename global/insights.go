package global

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// keptSubscriptions bounds the past sessions of a zone that are shown.
const keptSubscriptions = 10

// insights maintains a ZoneInsight for each zone in the status store: sessions, and counters by type. It is a
// kds.Observer.
type insights struct {
	status   store.Store
	instance string
	log      *slog.Logger
	// has reports whether this replica has a zone. Other replicas write the insights of theirs. Nil means all zones.
	has func(zone string) bool
	// refused returns a text that changes with what a zone and this server refuse of each other; empty if that is nothing.
	refused func(zone string) string
	// encode makes the spec of an insight; tests replace it.
	encode func(resources.Type, proto.Message) (*resources.Spec, error)
	// wake holds one signal: a zone is dirty. urgent signals that one is in soon.
	wake, urgent chan struct{}

	mu    sync.Mutex
	zones map[string]*zoneInsight // guarded by mu
	// sessions maps a session to its subscription.
	sessions map[uint64]*subscription // guarded by mu
	dirty    []string                 // guarded by mu: zones to write, among them those whose flag is set
	soon     []string                 // guarded by mu: zones of urgent events
}

// zoneInsight is the state of one zone since this process started.
type zoneInsight struct {
	subscriptions []*subscription
	// past holds ended sessions on other replicas.
	past          []*systempb.KDSSubscription
	streams       [2]time.Time
	healthChecked time.Time
	// dirty is set if it must be written.
	dirty bool
	// refusing is set if something was refused when it was last written.
	refusing bool
}

func newInsights(status store.Store, instance string, has func(zone string) bool, log *slog.Logger) *insights {
	return &insights{
		status: status, instance: instance, has: has, log: log, encode: resources.NewStatusSpec,
		refused: func(string) string { return "" },
		wake:    make(chan struct{}, 1), urgent: make(chan struct{}, 1),
		zones: map[string]*zoneInsight{}, sessions: map[uint64]*subscription{},
	}
}

// Observe implements kds.Observer.
func (i *insights) Observe(e kds.Event) {
	i.mu.Lock()
	z := i.note(e)
	urgent := z != nil && isUrgent(e.Kind)
	news := z != nil && !z.dirty
	if news {
		z.dirty = true
	}
	signal := i.wake
	switch {
	case urgent:
		i.soon = append(i.soon, e.Zone)
		signal = i.urgent
	case news:
		i.dirty = append(i.dirty, e.Zone)
	}
	i.mu.Unlock()
	if !news && !urgent {
		return
	}
	select {
	case signal <- struct{}{}:
	default:
	}
}

// isUrgent reports whether operators wait for a kind of event. A session begins before this replica claims its zone; its
// streams open after that, so that then it is written for certain.
func isUrgent(k kds.EventKind) bool {
	return k == kds.SessionStarted || k == kds.StreamOpened || k == kds.SessionEnded
}

// note updates the counters and returns the zone if its insight changed. The caller holds i.mu.
func (i *insights) note(e kds.Event) *zoneInsight {
	switch e.Kind {
	case kds.Sent, kds.Acknowledged, kds.Rejected:
		if s := i.sessions[e.Session]; s != nil && e.Direction == exchange.GlobalToZone {
			s.count(e)
			return s.zone
		}
		return nil
	}
	z := i.zones[e.Zone]
	if z == nil {
		if e.Kind != kds.SessionStarted && e.Kind != kds.HealthChecked {
			return nil
		}
		z = &zoneInsight{}
		i.zones[e.Zone] = z
	}
	switch e.Kind {
	case kds.SessionStarted:
		z.past = i.elsewhere(e.Zone, e.Time)
		i.start(z, e)
		return z
	case kds.HealthChecked:
		z.healthChecked = e.Time
		if len(z.subscriptions) == 0 {
			return nil
		}
		return z
	}
	s := i.sessions[e.Session]
	if s == nil {
		return nil
	}
	switch e.Kind {
	case kds.SessionEnded:
		s.disconnected = e.Time
		return z
	case kds.StreamOpened:
		if e.Peer != nil {
			s.peer = e.Peer
		}
		z.streams[e.Direction] = e.Time
		return z
	case kds.Received, kds.Withheld:
		if z.refusing || len(e.Refusals) > 0 {
			return z
		}
	}
	return nil
}

// elsewhere returns a zone's sessions on other replicas, marked as ended, since a session begins here.
func (i *insights) elsewhere(zone string, now time.Time) []*systempb.KDSSubscription {
	shown := i.status.Snapshot().Get(insightKey(zone))
	if shown == nil {
		return nil
	}
	spec, err := resources.SpecAs[systempb.ZoneInsight](shown)
	if err != nil {
		return nil
	}
	var out []*systempb.KDSSubscription
	for _, s := range spec.GetSubscriptions() {
		if s.GetGlobalInstanceId() != i.instance {
			out = append(out, endedSession(s, now))
		}
	}
	return out
}

// start adds a session and ends older ones that still appear open. The caller holds i.mu.
func (i *insights) start(z *zoneInsight, e kds.Event) {
	for _, old := range z.subscriptions {
		if old.disconnected.IsZero() {
			old.disconnected = e.Time
		}
	}
	s := &subscription{session: e.Session, zone: z, connected: e.Time}
	i.sessions[e.Session] = s
	z.subscriptions = append(z.subscriptions, s)
	if extra := len(z.subscriptions) - keptSubscriptions; extra > 0 {
		i.drop(z.subscriptions[:extra])
		z.subscriptions = slices.Delete(z.subscriptions, 0, extra)
	}
}

// drop removes sessions that are no longer shown. The caller holds i.mu.
func (i *insights) drop(gone []*subscription) {
	for _, s := range gone {
		delete(i.sessions, s.session)
	}
}

// forget removes a deleted zone's status.
func (i *insights) forget(ctx context.Context, zone string) {
	i.mu.Lock()
	if z := i.zones[zone]; z != nil {
		i.drop(z.subscriptions)
		delete(i.zones, zone)
	}
	i.mu.Unlock()
	if _, err := i.status.Apply(ctx, store.Batch{Ops: []store.Op{{Delete: insightKey(zone)}}}); err != nil &&
		ctx.Err() == nil {
		i.log.Error("cannot remove a zone's status", "zone", zone, "error", err)
	}
}
