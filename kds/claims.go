package kds

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// ClaimKey is the key of a zone's claim.
func ClaimKey(zone string) resources.Key {
	return resources.Key{Type: resources.TypeZoneClaim, Name: zone}
}

// ClaimOf returns the claim on a zone, or nil if there has never been one.
func ClaimOf(s store.Snapshot, zone string) *resources.ZoneClaim {
	held := s.Get(ClaimKey(zone))
	if held == nil {
		return nil
	}
	claim, err := resources.SpecAs[resources.ZoneClaim](held)
	if err != nil {
		return &resources.ZoneClaim{} // held by no replica
	}
	return claim
}

// Has reports whether this server has the zone's session, or had the last one. Without replicas it is always true.
func (g *Global) Has(zone string) bool {
	return g.config.Replica == "" || lost(g.config.Store.Snapshot(), g.config.Replica, zone) == nil
}

// lost returns the reason why a replica must not serve a zone, or nil if it holds the claim.
func lost(s store.Snapshot, replica, zone string) error {
	if replica == "" {
		return nil
	}
	claim := ClaimOf(s, zone)
	switch {
	case claim != nil && claim.Resync:
		return fmt.Errorf("zone %s: %w", zone, ErrResync)
	case claim == nil || claim.Replica != replica:
		return fmt.Errorf("zone %s: %w", zone, ErrFenced)
	}
	return nil
}

// claims returns a function that claims the zone for this replica, once for both streams of a session. From then on an
// older session of the zone, on any replica, cannot write. A zone that reconnects to the same replica costs no write.
func (g *Global) claims(s *session, data *zoneData) func() error {
	if g.config.Replica == "" {
		return func() error { return nil }
	}
	return sync.OnceValue(func() error { return g.claim(s, data) })
}

func (g *Global) claim(s *session, data *zoneData) error {
	for {
		snapshot := g.config.Store.Snapshot()
		batch, err := g.claiming(s, snapshot)
		if err != nil {
			return err
		}
		if claim := ClaimOf(snapshot, s.zone); claim != nil && claim.Resync {
			data.versions.forget()
		}
		_, err = g.config.Store.Apply(s.ctx, batch)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, store.ErrConflict), errors.Is(err, errMoved):
		case errors.Is(err, context.Canceled) && s.ctx.Err() != nil:
			return context.Cause(s.ctx)
		case err != nil:
			return fmt.Errorf("zone %s: its session cannot be noted: %w", s.zone, err)
		}
	}
}

// errMoved reports that another replica holds the claim, which the view did not show.
var errMoved = errors.New("another replica has the zone")

// claiming builds the batch that claims the zone for this replica. If this replica already holds the claim, it writes
// nothing, but the store must confirm that: a view that lags behind may not show that another replica held the zone
// meanwhile, nor what that replica sent to it.
func (g *Global) claiming(s *session, view store.Snapshot) (store.Batch, error) {
	if lost(view, g.config.Replica, s.zone) == nil {
		return store.Batch{Check: func(now store.Snapshot) error {
			if lost(now, g.config.Replica, s.zone) != nil {
				return errMoved
			}
			return s.fence()
		}}, nil
	}
	op, err := claimOp(view, s.zone, resources.ZoneClaim{Replica: g.config.Replica})
	return store.Batch{Ops: []store.Op{op}, Check: func(store.Snapshot) error { return s.fence() }}, err
}

// claimOp returns the operation that replaces the claim in the snapshot.
func claimOp(s store.Snapshot, zone string, claim resources.ZoneClaim) (store.Op, error) {
	spec, err := resources.NewSpecOf(resources.TypeZoneClaim, &claim)
	if err != nil {
		return store.Op{}, err
	}
	op := store.Op{Put: &resources.Resource{Key: ClaimKey(zone), Labels: map[string]string{}, Spec: spec},
		If: store.IfAbsent()}
	if held := s.Get(ClaimKey(zone)); held != nil {
		op.If = store.IfRevision(held.Revision)
	}
	return op, nil
}

// resyncElsewhere makes the replica that holds the zone's claim end the session, and the replica that gets the next
// session compare everything. It reports whether a replica holds the claim.
func (g *Global) resyncElsewhere(ctx context.Context, zone string) (bool, error) {
	for {
		snapshot := g.config.Store.Snapshot()
		claim := ClaimOf(snapshot, zone)
		if claim == nil || claim.Replica == "" {
			return false, nil
		}
		op, err := claimOp(snapshot, zone, resources.ZoneClaim{Resync: true})
		if err != nil {
			return false, err
		}
		_, err = g.config.Store.Apply(ctx, store.Batch{Ops: []store.Op{op}})
		if !errors.Is(err, store.ErrConflict) {
			return err == nil, err
		}
	}
}
