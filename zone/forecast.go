package zone

import (
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// forecastSync adds the destinations of each change's copies to the answers to dry runs. A zone knows the global, and
// the zones whose MeshTrusts it holds.
func forecastSync(zone string) api.PreviewFunc {
	return func(p *api.Preview) error {
		here := exchange.Vantage{Zone: zone}
		for trust := range p.After.List(store.Query{Type: resources.TypeMeshTrust}) {
			if other := trust.Zone(); other != "" {
				here.Zones = append(here.Zones, other)
			}
		}
		filter := exchange.NewFilter()
		for _, c := range p.Changes {
			c.Forecast.SyncedTo = filter.Reach(c.New, here)
		}
		return nil
	}
}
