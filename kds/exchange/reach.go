package exchange

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// Place is a server that asks how far what is written on it goes.
type Place struct {
	// Zone is the server's own; empty on the global.
	Zone string
	// Zones are those that the server knows of.
	Zones []string
	// Enabled is as in Audience.
	Enabled func(zone string) bool
}

// ReachesGlobal is the global's name among zones: no zone can have it as long as there is a global beside it in a list.
const ReachesGlobal = "global"

// Reach lists the servers that get a copy of r, which lives at from, once all is in sync: ReachesGlobal first, then zones
// by name. It takes peers to be as able as this server; one that is not may get less.
func (c *Crossing) Reach(r *resources.Resource, from Place) []string {
	reached := []string{}
	if from.Zone != "" {
		up := &Audience{Direction: ZoneToGlobal, Zone: from.Zone, Features: OwnFeatures(), Enabled: from.Enabled}
		if c.Stops(r, up) != "" {
			return reached
		}
		reached = append(reached, ReachesGlobal)
	}
	zones := slices.Compact(slices.Sorted(slices.Values(from.Zones)))
	for _, zone := range zones {
		down := &Audience{Direction: GlobalToZone, Zone: zone, Features: OwnFeatures(), Enabled: from.Enabled}
		if zone != from.Zone && c.Stops(r, down) == "" {
			reached = append(reached, zone)
		}
	}
	return reached
}
