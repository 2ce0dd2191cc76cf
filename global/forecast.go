package global

import (
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// forecastSync adds the zones that would receive the resource to the responses of dry runs.
func forecastSync(p *api.Preview) error {
	var zones []string
	for zone := range p.After.List(store.Query{Type: resources.TypeZone}) {
		zones = append(zones, zone.Name)
	}
	here := exchange.Vantage{Zones: zones, Enabled: func(zone string) bool { return kds.ZoneEnabled(p.After, zone) }}
	filter := exchange.NewFilter()
	for _, c := range p.Changes {
		c.Forecast.SyncedTo = filter.Reach(c.New, here)
	}
	return nil
}
