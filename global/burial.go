package global

import (
	"context"
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
)

// buryKnown is bury for a zone that was removed in another way. A zone that never had a credential has nothing to bury,
// even while remove runs.
func (a *admission) buryKnown(ctx context.Context, zone string) error {
	m, _, err := a.registry.Get(ctx, zone)
	if err != nil || m == nil || !m.DeletedAt.IsZero() || m.Blank() {
		return err
	}
	return a.bury(ctx, zone)
}

// bury leaves a tombstone: a record without credentials.
func (a *admission) bury(ctx context.Context, zone string) error {
	err := a.registry.Update(ctx, zone, func(m *enrolment.Record) error {
		m.Withdraw(a.now())
		m.ID, m.Store, m.Draining, m.DrainingAt, m.DeletedAt = "", "", false, time.Time{}, a.now().UTC()
		return nil
	})
	if err != nil {
		return err
	}
	return a.storeOf(zone).forget(ctx)
}
