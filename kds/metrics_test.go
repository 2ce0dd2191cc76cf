package kds

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestSeriesOfManyZones: what all zones have does not grow with the types, and details are there for what is behind only.
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

// TestLagOfASenderThatIsAwayIsUnknown: what a zone that has gone has written since then, nobody here knows; what it misses is known.
func TestLagOfASenderThatIsAwayIsUnknown(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	g := startGlobal(t, s)
	z := startZone(t, "zone-1", g.address, store.NewMemory())
	lags := func() map[string]bool {
		status, _ := g.Status("zone-1", "")
		out := map[string]bool{}
		for direction := range furthest(status.Types) {
			out[direction] = true
		}
		return out
	}
	up, down := exchange.ZoneToGlobal.Label(), exchange.GlobalToZone.Label()
	eventually(t, "both directions", func() bool { all := lags(); return all[up] && all[down] })
	z.stop()
	eventually(t, "the zone to leave", func() bool { status, _ := g.Status("zone-1", ""); return !status.Connected })
	key, spec := permission("p")
	put(t, s, written(t, globalHome, key, spec))
	status, _ := g.Status("zone-1", "")
	if l := furthest(status.Types); l[down].revisions == 0 || len(l) != 1 {
		t.Errorf("the zone is away, and its lag is %+v", l)
	}
}

// TestLagOfASenderThatSaysNoRevisionsIsUnknown: of a zone of the ecosystem nobody knows what it has not sent yet.
func TestLagOfASenderThatSaysNoRevisionsIsUnknown(t *testing.T) {
	g := startGlobal(t, store.NewMemory())
	p := dialPeer(t, "zone-1", g.address, plainFeatures)
	p.openUp()
	service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "backend"}
	p.send(service.Type, "1", nil, wireOf(t, "zone-1", written(t, zoneHome("zone-1"), service, `{"ports":[{"port":80}]}`)))
	status, _ := g.Status("zone-1", service.Type)
	if len(status.Types) != 1 || !status.Connected || status.Types[0].Acked != 1 || !status.Types[0].LagUnknown {
		t.Errorf("the status is %+v", status)
	}
	if l, ok := furthest(status.Types)[exchange.ZoneToGlobal.Label()]; ok {
		t.Errorf("its lag is %+v", l)
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
