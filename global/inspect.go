package global

import (
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/callers"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// addInspect adds the routes that inspect the proxies of all zones, the policies that reach them, and which zones would
// receive a resource.
func addInspect(routes *api.Server, durable, status store.Reader, away func(zone string) *api.Unknown,
	spread *rollout, asked *zoneQuestions, c *Config) {
	filter := exchange.NewFilter()
	shortfalls := &inspect.Shortfalls{Status: status, Now: c.Now}
	inspect.Register(routes, inspect.Config{
		Shortfalls: shortfalls,
		Store:      durable, SystemNamespace: c.SystemNamespace,
		Crosses: func(r *resources.Resource, zone string) bool {
			return slices.Contains(filter.Reach(r, exchange.Vantage{Zones: []string{zone}}), zone)
		},
	})
	deaf := func() (since time.Time, is bool) {
		store := spread.replicas.outdated()
		if store == nil {
			return time.Time{}, false
		}
		return store.Since, true
	}
	lacks := func(zone string) []api.Unknown { return lacking(spread.sync, zone) }
	doubts := &inspect.Doubts{Status: status, Absent: away, Started: c.Now(), Outdated: deaf, Behind: spread.behind,
		Lacking: lacks}
	inspect.RegisterPermissions(routes, durable, explain.Options{SystemNamespace: c.SystemNamespace, Shortfalls: shortfalls.Of,
		Doubts: doubts.Of})
	callers.Register(routes, callers.Config{Store: durable, Status: status, SystemNamespace: c.SystemNamespace, Absent: away,
		Outdated: deaf, Behind: spread.behind, Lacking: lacks, Reported: asked.seen})
	routes.AddPreview(forecastSync)
}
