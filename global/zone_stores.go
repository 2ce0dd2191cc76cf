package global

import (
	"context"
	"errors"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// zoneSeenSecret prefixes the names of secrets that hold how much this global has seen of a zone's store, and
// zoneBeforeSecret those of secrets with how many copies of a zone's there were before lists that are not done.
const (
	zoneSeenSecret   = "zone-store-seen-"    //nolint:gosec // the name of a secret
	zoneBeforeSecret = "zone-copies-before-" //nolint:gosec // the name of a secret
)

// zoneStore implements kds.Epochs for a zone's store. The epoch is in the zone's record. What was seen is in a secret
// beside it, because each batch from the zone writes it. A zone that has not joined has neither.
type zoneStore struct {
	registry *enrolment.Registry
	keeper   *secrets.Keeper
	zone     string
}

// storeOf implements kds.GlobalConfig's StoreOf.
func (g *gate) storeOf(zone string) kds.Epochs { return g.admission.storeOf(zone) }

func (a *admission) storeOf(zone string) zoneStore { return zoneStore{a.registry, a.keeper, zone} }

// Accepted implements kds.Epochs.
func (z zoneStore) Accepted(ctx context.Context) (string, error) {
	m, _, err := z.registry.Get(ctx, z.zone)
	if err != nil || m == nil {
		return "", err
	}
	return m.Store, nil
}

// Accept implements kds.Epochs.
func (z zoneStore) Accept(ctx context.Context, epoch string) error {
	return z.registry.Update(ctx, z.zone, func(m *enrolment.Record) error {
		if m.Blank() || m.Store == epoch {
			return enrolment.ErrNothing
		}
		m.Store = epoch
		return nil
	})
}

// Seen implements kds.Epochs.
func (z zoneStore) Seen(ctx context.Context) (lineage.Seen, error) {
	raw, _, err := z.keeper.Get(ctx, zoneSeenSecret+z.zone)
	if errors.Is(err, secrets.ErrNotFound) {
		return lineage.Seen{}, nil
	}
	return lineage.ParseSeen(string(raw)), err
}

// See implements kds.Epochs.
func (z zoneStore) See(ctx context.Context, seen lineage.Seen) ([]store.Op, error) {
	accepted, err := z.Accepted(ctx)
	if err != nil || accepted == "" {
		return nil, err
	}
	op, err := z.keeper.Replacing(zoneSeenSecret+z.zone, []byte(seen.String()))
	return []store.Op{op}, err
}

// Before implements kds.Epochs.
func (z zoneStore) Before(ctx context.Context) (kds.Before, error) {
	accepted, err := z.Accepted(ctx)
	if err != nil || accepted == "" {
		return nil, err
	}
	raw, _, err := z.keeper.Get(ctx, zoneBeforeSecret+z.zone)
	if errors.Is(err, secrets.ErrNotFound) {
		return kds.Before{}, nil
	}
	if err != nil {
		return nil, err
	}
	return kds.ParseBefore(string(raw))
}

// NoteBefore implements kds.Epochs.
func (z zoneStore) NoteBefore(ctx context.Context, copies kds.Before) ([]store.Op, error) {
	accepted, err := z.Accepted(ctx)
	if err != nil || accepted == "" {
		return nil, err
	}
	op, err := z.keeper.Replacing(zoneBeforeSecret+z.zone, []byte(copies.String()))
	return []store.Op{op}, err
}

// forget removes what is kept of a zone that is deleted.
func (z zoneStore) forget(ctx context.Context) error {
	for _, name := range [...]string{zoneSeenSecret + z.zone, zoneBeforeSecret + z.zone} {
		for version := z.keeper.Version(name); version != 0; version = z.keeper.Version(name) {
			if err := z.keeper.Delete(ctx, name, version); err != nil && !errors.Is(err, secrets.ErrChanged) {
				return err
			}
		}
	}
	return nil
}
