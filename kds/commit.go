package kds

import (
	"fmt"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// checkOf returns the check of batches of a type. Zones are in the durable store only.
func (v *receiver) checkOf(t resources.Type) func(store.Snapshot) error {
	if v.storeOf(t) == v.store {
		return v.check
	}
	return func(store.Snapshot) error { return v.check(v.store.Snapshot()) }
}

// storeOf returns the store that holds copies of a type.
func (v *receiver) storeOf(t resources.Type) store.Store {
	if v.status != nil && isLive(t) {
		return v.status
	}
	return v.store
}

// check fails if this session is no longer the zone's, or the zone does not take part. It runs under the store's write
// lock.
func (v *receiver) check(s store.Snapshot) error {
	if err := v.session.fence(); err != nil {
		return err
	}
	if v.arrival.Direction == exchange.GlobalToZone {
		return nil
	}
	if err := lost(s, v.replica, v.arrival.Zone); err != nil {
		return err
	}
	if zone := s.Get(ZoneKey(v.arrival.Zone)); zone == nil || !takesPart(zone) {
		return fmt.Errorf("zone %s: %w", v.arrival.Zone, ErrZoneDisabled)
	}
	return nil
}
