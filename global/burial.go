package global

import (
	"context"
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
)

// writeTombstoneIfAdmitted is writeTombstone for a zone that was removed in another way. A zone that never had a
// credential needs none, even while remove runs.
func (a *admission) writeTombstoneIfAdmitted(ctx context.Context, zone string) error {
	m, _, err := a.registry.Get(ctx, zone)
	if err != nil || m == nil || !m.DeletedAt.IsZero() || m.Blank() {
		return err
	}
	return a.writeTombstone(ctx, zone)
}

// writeTombstone leaves a tombstone: a record without credentials.
func (a *admission) writeTombstone(ctx context.Context, zone string) error {
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
