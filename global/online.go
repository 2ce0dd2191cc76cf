package global

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

var onlineDesc = prometheus.NewDesc("causeway_zone_online", "1 while an enabled zone has a session, with this server or, as far as this server knows, with another replica; 0 while it has none, or has not connected since the start. No series while this is unknown: the zone was with another replica, and this one has no connection to etcd.", []string{"zone"}, nil)

// Describe implements prometheus.Collector.
func (z *zones) Describe(out chan<- *prometheus.Desc) { out <- onlineDesc }

// Collect implements prometheus.Collector. Every enabled zone has a series, even if it never connected to this server,
// unless its status is unknown.
func (z *zones) Collect(out chan<- prometheus.Metric) {
	snapshot := z.store.Snapshot()
	for r := range snapshot.List(store.Query{Type: resources.TypeZone}) {
		if !kds.ZoneEnabled(snapshot, r.Name) || z.sync.Unheard(r.Name) {
			continue
		}
		online := 1.0
		if _, away := z.sync.Away(r.Name); away {
			online = 0
		}
		out <- prometheus.MustNewConstMetric(onlineDesc, prometheus.GaugeValue, online, r.Name)
	}
}
