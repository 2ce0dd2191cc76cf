package exchange

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// Vantage is a server, for the question which others its resources reach.
type Vantage struct {
	// Zone is the server's own zone; empty on the global.
	Zone string
	// Zones are those that the server knows.
	Zones []string
	// Enabled is as in Audience.
	Enabled func(zone string) bool
}

// ReachesGlobal is the global's name among zones. The global comes first in a list, beside a zone of that name.
const ReachesGlobal = "global"

// Reach lists the servers that get a copy of r, which is stored at from, once all is in sync: ReachesGlobal first, then
// zones by name. It assumes that peers have all features of this server; one without them may get less.
func (c *Filter) Reach(r *resources.Resource, from Vantage) []string {
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
