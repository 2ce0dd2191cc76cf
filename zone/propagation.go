package zone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// propagation reports who trusts the authorities of this zone: its own proxies, the global, and, as the global
// reports, the other zones and their proxies.
type propagation struct {
	home        resources.Home
	store       store.Reader
	authorities *identity.Authorities
	statuses    func() []xds.SyncStatus
	// awaited counts the proxies of a mesh that are expected to reconnect after a start.
	awaited func(mesh string) int
	// link is nil for a zone that runs alone.
	link *kds.Zone
}

// otherZones stands for zones whose names are unknown.
const otherZones = "other zones"

// unaware lists who does not yet trust the current authorities of a mesh domain.
func (k *propagation) unaware(ctx context.Context, meshDomain string) identity.Unaware {
	var out identity.Unaware
	wait := func(format string, args ...any) { out.Waited = append(out.Waited, fmt.Sprintf(format, args...)) }
	all, err := k.authorities.All(meshDomain)
	if err != nil || len(all) == 0 {
		wait("its authorities, which cannot be read")
		return out
	}
	mesh, snapshot := identity.MeshOfDomain(meshDomain), k.store.Snapshot()
	if believed := identity.BundlesOf(snapshot, mesh, k.home); slices.ContainsFunc(all,
		func(one *identity.Authority) bool { return !believed.Has(one) }) {
		wait("a MeshTrust that holds it")
		return out
	}
	if n := k.behind(mesh); n > 0 {
		wait("%d proxies of this zone", n)
	}
	if n := k.awaited(mesh); n > 0 {
		wait("%d proxies of this zone that have not reconnected since its start", n)
	}
	published := snapshot.Get(identity.TrustKey(meshDomain, k.home.Zone))
	if k.link == nil || published == nil {
		return out
	}
	reached, err := k.link.Reached(ctx, published)
	switch {
	case errors.Is(err, kds.ErrCannotTell):
		out.Away = append(out.Away, otherZones)
		if zones := k.link.Rollout(published).Zones; zones.Acknowledged < zones.Total {
			wait("the global")
		}
	case err != nil:
		wait("the global, which is not connected")
	case !reached.Stored:
		wait("the global")
	default:
		out.Waited = append(out.Waited, reached.Pending...)
		for _, zone := range reached.Refused {
			wait("%s, which refuses it: %s", zone.Zone, zone.Reason)
		}
		for _, zone := range reached.Behind {
			out.Away = append(out.Away, "proxies of "+zone)
		}
		for _, zone := range reached.Offline {
			out.Away = append(out.Away, offline(zone))
		}
	}
	slices.SortFunc(out.Away, strings.Compare)
	return out
}

func offline(zone tracker.RolloutOffline) string {
	switch {
	case zone.NotSeen && !zone.Since.IsZero():
		return zone.Zone + ", not seen since the global's server started at " + zone.Since.UTC().Format(time.RFC3339)
	case zone.Since.IsZero():
		return zone.Zone + ", offline"
	}
	return zone.Zone + ", offline since " + zone.Since.UTC().Format(time.RFC3339)
}

// behind counts the zone's proxies in a mesh that have not acknowledged their whole configuration.
func (k *propagation) behind(mesh string) int {
	n := 0
	for _, one := range k.statuses() {
		if one.Behind && one.Dataplane.Mesh == mesh {
			n++
		}
	}
	return n
}
