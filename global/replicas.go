package global

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kubernetes/leader"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/resources/store/etcd"
)

const (
	// publishInterval is the shortest time between two messages to the other replicas. The first after a pause is sent
	// at once.
	publishInterval = time.Second
	// DefaultEtcdHistory is how long etcd keeps old revisions unless the operator configures it.
	DefaultEtcdHistory = time.Hour
)

// replicas shares between the globals of a store what is not in the store: which replicas are live, and the status of
// each zone. A replica sends the others the status of its zones, which they show as their own. The longest present
// leads: it does what only one may do. It is a kds.Observer. A global with a store of its own has replicas without
// shared state.
type replicas struct {
	replicaParts
	shared  *etcd.SharedState
	history time.Duration
	// kind is the kind of store: backend.Bolt or backend.Etcd.
	kind    string
	now     func() time.Time
	log     *slog.Logger
	started time.Time
	// wake and urgent hold one signal each: there are changes to send, and somebody waits for them. moved signals that
	// this replica's own entry changed.
	wake, urgent, moved chan struct{}

	mu         sync.Mutex
	present    []replica                // guarded by mu: in order of arrival
	dirtyZones map[string]bool          // guarded by mu: zones whose state changed
	dirtyKeys  map[resources.Key]bool   // guarded by mu: resources of own zones that differ from the shared state
	published  map[resources.Key]string // guarded by mu: resources of own zones in the shared state, with the zone
	remote     map[string]remoteZone    // guarded by mu
	lost       time.Time                // guarded by mu: since when the others cannot be heard; zero while they can
	full       bool                     // guarded by mu: the reason is that etcd answers but rejects writes
	missing    []replica                // guarded by mu: no longer listed, but perhaps only unable to write
}

// replica is one of the live replicas.
type replica struct {
	Instance  string    `json:"-"`
	Addresses []string  `json:"addresses"`
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	// Revision is the revision that it shows, about a second old.
	Revision uint64 `json:"revision"`
}

// remoteZone is the last state of a zone in the shared state.
type remoteZone struct {
	replica   string
	connected bool
}

// replicaParts are the parts of this replica that replicas uses.
type replicaParts struct {
	durable  *backend.Store
	status   store.Store
	sync     *kds.Global
	clones   *clones
	instance string
	// addresses are this replica's addresses for zones.
	addresses []string
	// term is this replica's lead, nil without a Lease.
	term *leader.Term
}

func newReplicas(c *Config, p replicaParts) *replicas {
	return &replicas{
		replicaParts: p, kind: cmp.Or(c.Store.Kind, backend.Bolt), shared: p.durable.SharedState(), started: c.Now().UTC(),
		moved: make(chan struct{}, 1), history: c.EtcdHistory, now: c.Now, log: c.Log,
		wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1),
		dirtyZones: map[string]bool{}, dirtyKeys: map[resources.Key]bool{}, published: map[resources.Key]string{},
		remote: map[string]remoteZone{},
	}
}

// leads reports whether this replica does what only one may do.
func (r *replicas) leads() bool {
	if r.shared == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A replica that is cut off is no longer live.
	return len(r.present) > 0 && r.present[0].Instance == r.instance &&
		(r.lost.IsZero() || r.full || r.now().Sub(r.lost) < doubtAfter)
}

// everyAddress returns the global's addresses for zones: own first, then those of the other replicas.
func (r *replicas) everyAddress(own []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(own)
	for _, m := range r.present {
		for _, address := range m.Addresses {
			if !slices.Contains(out, address) && len(out) < enrolment.MaxJoinAddresses {
				out = append(out, address)
			}
		}
	}
	return out
}

// has reports whether this replica has a zone.
func (r *replicas) has(zone string) bool { return r.sync.Has(zone) }

// Observe implements kds.Observer.
func (r *replicas) Observe(e kds.Event) {
	if r.shared == nil || e.Zone == "" {
		return
	}
	r.mu.Lock()
	r.dirtyZones[e.Zone] = true
	r.mu.Unlock()
	signal := r.wake
	if e.Kind == kds.SessionEnded || e.Kind == kds.StreamOpened {
		signal = r.urgent
	}
	poke(signal)
}

func poke(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// run sends and receives changes until ctx ends.
func (r *replicas) run(ctx context.Context) error {
	if r.shared == nil {
		return nil
	}
	var group errgroup.Group
	group.Go(func() error {
		r.shared.Register(ctx, etcd.Registration{ID: r.instance, Value: r.shown, Changed: r.moved, Registered: r.publishAll})
		return nil
	})
	group.Go(func() error { return r.showAlways(ctx) })
	group.Go(func() error { return r.followState(ctx) })
	group.Go(func() error {
		r.shared.History(ctx, r.history, r.leads)
		return nil
	})
	group.Go(func() error { return r.publishAlways(ctx) })
	return group.Wait()
}

// publishAll sends all state of this replica's zones again, because others may have considered it dead.
func (r *replicas) publishAll() {
	zones := r.sync.Zones()
	r.mu.Lock()
	for _, zone := range zones {
		r.dirtyZones[zone] = true
	}
	for key := range r.published {
		r.dirtyKeys[key] = true
	}
	r.mu.Unlock()
	poke(r.urgent)
}

// forget removes a deleted zone from the shared state.
func (r *replicas) forget(ctx context.Context, zone string) {
	if r.shared == nil {
		return
	}
	r.mu.Lock()
	delete(r.dirtyZones, zone)
	delete(r.remote, zone)
	r.mu.Unlock()
	if err := r.shared.Clear(ctx, zonePrefix(zone)); err != nil && ctx.Err() == nil {
		r.log.Error("cannot remove the status of a deleted zone from the other replicas", "zone", zone, "error", err)
	}
}
