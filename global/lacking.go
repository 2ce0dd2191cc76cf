package global

import (
	"fmt"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
)

// decisive are the types by which proxies decide who may call whom.
var decisive = []resources.Type{resources.TypeMeshTrafficPermission, resources.TypeTrafficTarget,
	resources.TypeHTTPRouteGroup, resources.TypeMeshProxyPatch}

// lacking returns why the proxies of a connected zone may decide by other permissions than those that are stored here:
// changes have not come there, or the zone holds removals.
func lacking(sync *kds.Global, zone string) (all []api.Unknown) {
	if late := sync.Late(zone, decisive...); !late.IsZero() {
		all = append(all, api.Unknown{Since: late.UTC(), Reason: "zone " + zone +
			" has not acknowledged all changes of permissions: until it does, its proxies may decide by what they had before"})
	}
	report := sync.LastReport(zone)
	if report == nil {
		return all
	}
	for _, t := range decisive {
		if held := report.Held[t]; held > 0 {
			all = append(all, api.Unknown{Since: report.Received.UTC(), Reason: fmt.Sprintf(
				"zone %s holds the removal of %d %s: they are in force there until an operator accepts it", zone, held, t)})
		}
	}
	return all
}
