package kds

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func TestZoneReportsItsProxies(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	g := startGlobal(t, s)
	var late atomic.Pointer[[]tracker.ProxyBehind]
	late.Store(&[]tracker.ProxyBehind{{Mesh: "default", Name: "dp-1", Reason: "no such cluster"}})
	startZone(t, "zone-1", g.address, store.NewMemory(), func(c *ZoneConfig) {
		c.Proxies = func(func(uint64) bool) ([]tracker.ProxyBehind, uint32) { return *late.Load(), 1 }
	})
	key, spec := permission("p")
	revision := put(t, s, written(t, globalHome, key, spec))
	eventually(t, "a report of the revision", func() bool {
		r := g.LastReport("zone-1")
		return r != nil && r.Applied[key.Type] >= revision && slices.Equal(r.Behind, *late.Load())
	})
	late.Store(&[]tracker.ProxyBehind{})
	eventually(t, "the proxy to be up to date", func() bool { return len(g.LastReport("zone-1").Behind) == 0 })
}

func TestRolloutNamesWhoIsMissing(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	g := startGlobal(t, s)
	startZone(t, "zone-1", g.address, store.NewMemory())
	startZone(t, "zone-2", g.address, store.NewMemory(), func(c *ZoneConfig) { c.Validate = refusing("p") })
	away := startZone(t, "zone-3", g.address, store.NewMemory())
	eventually(t, "three zones", func() bool {
		n := 0
		for _, status := range g.Statuses() {
			if status.Connected && len(status.Types) > 20 {
				n++
			}
		}
		return n == 3
	})
	away.stop()
	eventually(t, "a zone to leave", func() bool { status, _ := g.Status("zone-3", ""); return !status.Connected })
	put(t, s, written(t, globalHome, ZoneKey("zone-4"), `{"enabled":true}`),
		written(t, globalHome, ZoneKey("zone-5"), `{"enabled":false}`))
	key, spec := permission("p")
	put(t, s, written(t, globalHome, key, spec))
	rollout := func() *tracker.Rollout { return g.Rollout(s.Snapshot().Get(key)) }
	eventually(t, "the zones' answers", func() bool { return len(rollout().Zones.Pending) == 0 })
	z := rollout().Zones
	if !slices.Equal(z.Disabled, []string{"zone-5"}) {
		t.Errorf("disabled: %v", z.Disabled)
	}
	if z.Total != 4 || z.Acknowledged != 1 || !z.Has("zone-1") {
		t.Errorf("zones: %+v", z)
	}
	if len(z.Refused) != 1 || z.Refused[0].Zone != "zone-2" {
		t.Errorf("refused: %+v", z.Refused)
	}
	if len(z.Offline) != 2 || z.Offline[0].Zone != "zone-3" || z.Offline[0].Since.IsZero() || z.Offline[0].NotSeen ||
		z.Offline[1].Zone != "zone-4" || !z.Offline[1].NotSeen {
		t.Errorf("offline: %+v", z.Offline)
	}
}

// TestRolloutOfAZonesOwn checks that a zone's rollout counts the global's answer for what it wrote; copies go nowhere
// from there.
func TestRolloutOfAZonesOwn(t *testing.T) {
	t.Parallel()
	s, own := store.NewMemory(), store.NewMemory()
	g := startGlobal(t, s)
	z := startZone(t, "zone-1", g.address, own)
	key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "backend"}
	put(t, own, written(t, zoneHome("zone-1"), key, `{"ports":[{"port":80}]}`))
	eventually(t, "the global's acknowledgement", func() bool {
		r := z.Rollout(own.Snapshot().Get(key))
		return r.Zones.Total == 1 && r.Zones.Has(exchange.ReachesGlobal)
	})
	global, spec := permission("p")
	put(t, s, written(t, globalHome, global, spec))
	eventually(t, "the copy", func() bool { return find(own, global.Type, "p") != nil })
	eventually(t, "the copy to be known as the newest",
		func() bool { return z.Rollout(find(own, global.Type, "p")).Source == nil })
	if r := z.Rollout(find(own, global.Type, "p")); r.Zones.Total != 0 {
		t.Errorf("a copy of the global's goes to %+v", r.Zones)
	}
	z.met.settle(nil) // as a session begins
	if r := z.Rollout(find(own, global.Type, "p")); r.Source == nil || !r.Source.Comparing || r.Source.Since.IsZero() {
		t.Errorf("before anything is compared, a copy waits for %+v", r.Source)
	}
	g.stop()
	eventually(t, "a copy that may have been replaced", func() bool {
		r := z.Rollout(find(own, global.Type, "p"))
		return r.Source != nil && r.Source.Zone == exchange.ReachesGlobal && !r.Source.Since.IsZero() && !r.Source.NotSeen
	})
	if r := z.Rollout(own.Snapshot().Get(key)); r.Source != nil {
		t.Errorf("what is written here waits for %+v", r.Source)
	}
}

// TestZoneIsToldHowFarItsOwnHasCome checks that the global answers a zone about its own resources by name, and about no
// other content or zone.
func TestZoneIsToldHowFarItsOwnHasCome(t *testing.T) {
	t.Parallel()
	own := store.NewMemory()
	g := startGlobal(t, store.NewMemory())
	z := startZone(t, "zone-1", g.address, own)
	var late atomic.Pointer[[]tracker.ProxyBehind]
	late.Store(&[]tracker.ProxyBehind{{Mesh: "default", Name: "dp-1"}})
	other := startZone(t, "zone-2", g.address, store.NewMemory(),
		func(c *ZoneConfig) {
			c.Proxies = func(func(uint64) bool) ([]tracker.ProxyBehind, uint32) { return *late.Load(), 1 }
		})
	startZone(t, "zone-3", g.address, store.NewMemory(), func(c *ZoneConfig) { c.Validate = refusing("identity-zone-1") })
	key := resources.Key{Type: resources.TypeMeshTrust, Mesh: "default", Name: "identity-zone-1"}
	trust := written(t, zoneHome("zone-1"), key, `{"trustDomain":"default.zone-1.mesh.local","caBundles":[]}`)
	ask := func(z *testZone, r *resources.Resource) *tracker.Reached {
		t.Helper()
		answer, err := z.Reached(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	eventually(t, "three zones", func() bool { return z.Connected() && other.Connected() && len(g.Statuses()) == 3 })
	put(t, own, trust)
	eventually(t, "it to have come to zone-2, not to its proxy, and to be refused by zone-3", func() bool {
		r := ask(z, trust)
		return r.Stored && len(r.Pending) == 0 && slices.Equal(r.Behind, []string{"zone-2"}) && len(r.Refused) == 1 &&
			r.Refused[0].Zone == "zone-3"
	})
	told := make(chan struct{})
	startZone(t, "zone-4", g.address, store.NewMemory(), func(c *ZoneConfig) {
		c.Proxies = func(func(uint64) bool) ([]tracker.ProxyBehind, uint32) { <-told; return nil, 0 }
	})
	tell := sync.OnceFunc(func() { close(told) })
	t.Cleanup(tell)
	eventually(t, "it to have come to zone-4, which has told nothing of its proxies", func() bool {
		return slices.Equal(ask(z, trust).Behind, []string{"zone-2", "zone-4"})
	})
	tell()
	many := make([]tracker.ProxyBehind, maxBehind+1)
	for i := range many {
		many[i] = tracker.ProxyBehind{Mesh: "other", Name: fmt.Sprint("dp-", i)}
	}
	late.Store(&many)
	eventually(t, "a report that names not all", func() bool { r := g.LastReport("zone-2"); return r != nil && r.More == 1 })
	eventually(t, "zone-2 to be behind, where who is, is not all named",
		func() bool { return slices.Equal(ask(z, trust).Behind, []string{"zone-2"}) })
	late.Store(&[]tracker.ProxyBehind{})
	eventually(t, "it to have come to the proxies", func() bool { return len(ask(z, trust).Behind) == 0 })
	if r := ask(z, written(t, zoneHome("zone-1"), key, `{"trustDomain":"default.zone-1.mesh.local"}`)); r.Stored {
		t.Error("told of another content")
	}
	if r := ask(other, trust); r.Stored {
		t.Error("told of another zone's")
	}
	other.stop()
	eventually(t, "a zone to leave", func() bool { status, _ := g.Status("zone-2", ""); return !status.Connected })
	put(t, own, written(t, zoneHome("zone-1"), key, `{"trustDomain":"default.zone-1.mesh.local","caBundles":null}`))
	eventually(t, "it to be said who is away", func() bool {
		r := ask(z, own.Snapshot().Get(key))
		return r.Stored && len(r.Offline) == 1 && r.Offline[0].Zone == "zone-2"
	})
	if _, err := other.Reached(t.Context(), trust); !errors.Is(err, ErrNotConnected) {
		t.Errorf("got %v", err)
	}
}

// TestZoneCalledGlobal checks a zone named global: another zone's refusals are not counted as its own.
func TestZoneCalledGlobal(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	g := startGlobal(t, s)
	startZone(t, "zone-1", g.address, store.NewMemory(), func(c *ZoneConfig) { c.Validate = refusing("p") })
	startZone(t, "global", g.address, store.NewMemory())
	eventually(t, "both zones", func() bool { return len(g.Zones()) == 2 })
	key, spec := permission("p")
	put(t, s, written(t, globalHome, key, spec))
	eventually(t, "one that refuses, and one that acknowledges", func() bool {
		zones := g.Rollout(s.Snapshot().Get(key)).Zones
		return len(zones.Refused) == 1 && zones.Refused[0].Zone == "zone-1" && zones.Acknowledged == 1
	})
}
