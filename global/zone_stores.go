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

// zoneSeenSecret prefixes the names of secrets that hold how much this global has seen of a zone's store.
const zoneSeenSecret = "zone-store-seen-" //nolint:gosec // the name of a secret

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

// forget removes what was seen of a zone that is deleted.
func (z zoneStore) forget(ctx context.Context) error {
	for {
		version := z.keeper.Version(zoneSeenSecret + z.zone)
		if version == 0 {
			return nil
		}
		if err := z.keeper.Delete(ctx, zoneSeenSecret+z.zone, version); !errors.Is(err, secrets.ErrChanged) {
			return err
		}
	}
}
