package global

import (
	"context"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
)

// zoneStore implements kds.Incarnations for a zone's store, in the zone's record. A zone that has not joined has no
// record.
type zoneStore struct {
	members *enrolment.Registry
	zone    string
}

// storeOf implements kds.GlobalConfig's StoreOf.
func (g *gate) storeOf(zone string) kds.Incarnations { return zoneStore{g.admission.members, zone} }

// Accepted implements kds.Incarnations.
func (z zoneStore) Accepted(ctx context.Context) (string, error) {
	m, _, err := z.members.Get(ctx, z.zone)
	if err != nil || m == nil {
		return "", err
	}
	return m.Store, nil
}

// Accept implements kds.Incarnations.
func (z zoneStore) Accept(ctx context.Context, incarnation string) error {
	return z.members.Update(ctx, z.zone, func(m *enrolment.Record) error {
		if m.Blank() || m.Store == incarnation {
			return enrolment.ErrNothing
		}
		m.Store = incarnation
		return nil
	})
}
