package tracker

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/resources"
)

// TestSeriesOfManyZones checks that the series of all zones do not grow with the types, and that details exist only for
// what is behind.
func TestSeriesOfManyZones(t *testing.T) {
	t.Parallel()
	const zones, most = 1000, 6
	statuses := make([]SyncStatus, zones)
	for i := range statuses {
		statuses[i] = SyncStatus{Zone: fmt.Sprintf("zone-%d", i), Connected: true}
		for _, d := range resources.Descriptors() {
			for _, direction := range []string{"toZone", "toGlobal"} {
				one := TypeSync{Type: d.Type, Direction: direction}
				if d.Type == resources.TypeMeshTimeout && i < 3 {
					one.LagSeconds, one.LagRevisions = float64(10+i), uint64(i+1)
				}
				statuses[i].Types = append(statuses[i].Types, one)
			}
		}
	}
	all := func() []SyncStatus { return statuses }
	registry, detail := prometheus.NewPedanticRegistry(), prometheus.NewPedanticRegistry()
	registry.MustRegister(StatusCollector{Statuses: all})
	detail.MustRegister(LagCollector{Statuses: all})
	if n := seriesOf(t, registry); n == 0 || n > most*zones {
		t.Errorf("%d series for %d zones, want at most %d each", n, zones, most)
	}
	if n := seriesOf(t, detail); n != 6 {
		t.Errorf("%d series say which types are behind, want 3 zones in 2 directions", n)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "causeway_kds_lag_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetValue() == "zone-2" && metric.GetGauge().GetValue() != 12 {
					t.Errorf("zone-2 is behind by %v, want the lag of the type that is furthest behind", metric.GetGauge().GetValue())
				}
			}
		}
	}
}

func seriesOf(t *testing.T, g prometheus.Gatherer) (n int) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		n += len(family.GetMetric())
	}
	return n
}
