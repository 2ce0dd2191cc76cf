package kds

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestLiveStatusIsNeverDurable checks that DataplaneInsights go from the zone's status store to the global's, beside
// their Dataplanes, and vanish when the zone restarts.
func TestLiveStatusIsNeverDurable(t *testing.T) {
	t.Parallel()
	durable, status := store.NewMemory(), store.NewMemory()
	g := startGlobal(t, durable, func(c *GlobalConfig) { c.Status = status })
	home := zoneHome("zone-1")
	own, live := store.NewMemory(), store.NewMemory()
	for i := range 12 {
		key := resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: fmt.Sprintf("dp-%d", i)}
		put(t, own, written(t, home, key,
			`{"networking":{"address":"127.0.0.1","inbound":[{"port":80,"tags":{"kuma.io/service":"a"}}]}}`))
		key.Type = resources.TypeDataplaneInsight
		put(t, live, written(t, home, key, `{"subscriptions":[{"id":"1"}]}`))
	}
	z := startZone(t, "zone-1", g.address, own, func(c *ZoneConfig) { c.Status = live })
	eventually(t, "insights on the global", func() bool { return count(status, resources.TypeDataplaneInsight) == 12 })
	eventually(t, "dataplanes on the global", func() bool { return count(durable, resources.TypeDataplane) == 12 })
	for dp := range durable.Snapshot().List(store.Query{Type: resources.TypeDataplane}) {
		key := dp.Key
		key.Type = resources.TypeDataplaneInsight
		if status.Snapshot().Get(key) == nil {
			t.Errorf("no insight has the key of %s", dp.Key)
		}
	}
	if n := count(durable, resources.TypeDataplaneInsight); n != 0 {
		t.Errorf("%d insights are durable", n)
	}
	key := resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: "dp-0"}
	put(t, live, written(t, home, key, `{"subscriptions":[{"id":"2"}]}`))
	eventually(t, "a change", func() bool {
		r := find(status, key.Type, "dp-0")
		return r != nil && string(r.Spec.JSON()) == `{"subscriptions":[{"id":"2"}]}`
	})
	z.stop()
	startZone(t, "zone-1", g.address, own, func(c *ZoneConfig) { c.Status = store.NewMemory() })
	eventually(t, "what a restart forgot to be gone",
		func() bool { return count(status, resources.TypeDataplaneInsight) == 0 })
}
