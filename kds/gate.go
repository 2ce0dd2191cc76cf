package kds

import "github.com/causeway-mesh/causeway/resources/store"

// gate decides whether a zone may be sent anything: it is enabled, and no other replica holds its claim. It reads the
// zone's own resource again only when a commit changed it. The zero value, of a stream to the global, is always open.
type gate struct {
	zone, replica string
	// stale is set if the zone's own resource may have changed.
	stale bool
	// enabled is the last result, once judged is set.
	enabled, judged bool
}

// note records a commit that may have changed the zone's own resource or its claim.
func (g *gate) note(c *store.Commit) {
	for i := range c.Changes {
		if zone := zoneOf(c.Changes[i]); zone != "" && zone == g.zone {
			g.stale = true
			return
		}
	}
}

// check returns an error if the zone was disabled or deleted, or if another replica holds its claim.
func (g *gate) check(s store.Reader) error {
	if g.zone == "" || !g.stale {
		return nil
	}
	g.stale = false
	snapshot := s.Snapshot()
	zone := snapshot.Get(ZoneKey(g.zone))
	g.enabled, g.judged = zone != nil && takesPart(zone), true
	if !g.enabled {
		return ErrZoneDisabled
	}
	return lost(snapshot, g.replica, g.zone)
}

// open reports whether the zone is enabled. It uses the last result unless the store has commits after seen.
func (g *gate) open(now store.Snapshot, seen uint64) bool {
	if g.zone == "" {
		return true
	}
	if now.Revision() > seen {
		return ZoneEnabled(now, g.zone)
	}
	if !g.judged {
		g.enabled, g.judged = ZoneEnabled(now, g.zone), true
	}
	return g.enabled
}
