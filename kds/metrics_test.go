package kds

import (
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestLagOfASenderThatIsAwayIsUnknown checks that what a disconnected zone has written since is unknown, and what it
// lacks is known.
func TestLagOfASenderThatIsAwayIsUnknown(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	g := startGlobal(t, s)
	z := startZone(t, "zone-1", g.address, store.NewMemory())
	lags := func() map[string]bool {
		status, _ := g.Status("zone-1", "")
		out := map[string]bool{}
		for direction := range tracker.Furthest(status.Types) {
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
	if l := tracker.Furthest(status.Types); l[down].Revisions == 0 || len(l) != 1 {
		t.Errorf("the zone is away, and its lag is %+v", l)
	}
}

// TestLagOfASenderThatSaysNoRevisionsIsUnknown checks that what a Kuma zone has not sent yet is unknown.
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
	if l, ok := tracker.Furthest(status.Types)[exchange.ZoneToGlobal.Label()]; ok {
		t.Errorf("its lag is %+v", l)
	}
}
