package kds

import (
	"context"
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestAnotherStoreOfAZoneDeletesNothing checks a zone that reconnects with a store that the global does not know,
// restored or new: the global deletes nothing for what that store lacks, however little it is. A deliberate deletion
// afterwards takes effect, and once nothing is held, the store counts as known.
func TestAnotherStoreOfAZoneDeletesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		epoch               string
		lacking, left, held int
	}{
		"another, one":  {otherStore, 1, 10, 1},
		"another, all":  {otherStore, 10, 10, 10},
		"another, none": {otherStore, 0, 10, 0},
		"the same":      {firstStore, 3, 7, 0},
		"not announced": {"", 3, 7, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := &notedEpoch{}
			above := store.NewMemory()
			var all []*resources.Resource
			for i := range 10 {
				key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: fmt.Sprintf("s%d", i)}
				all = append(all, written(t, zoneHome("zone-1"), key, `{"ports":[{"port":80}]}`))
			}
			g := startGlobal(t, above, func(c *GlobalConfig) { c.StoreOf = func(string) Epochs { return kept } })
			begin := func(epoch string, rs []*resources.Resource) (store.Store, *testZone) {
				own := store.NewMemory()
				put(t, own, rs...)
				return own, startZone(t, "zone-1", g.address, own, func(c *ZoneConfig) { c.Own = namedStore(epoch) })
			}
			_, z := begin(firstStore, all)
			eventually(t, "ten services", func() bool { return count(above, all[0].Type) == 10 && kept.now() == firstStore })
			z.stop()
			seen := g.events.count(Received, "")
			own, _ := begin(tt.epoch, all[tt.lacking:])
			eventually(t, "every type compared",
				func() bool { return g.events.count(Received, "") >= seen+typesOf(exchange.ZoneToGlobal) })
			wantHeld := func(left, held int, strange bool) {
				t.Helper()
				eventually(t, fmt.Sprintf("the global to have %d and to hold %d, the store to be strange: %t", left, held, strange), func() bool {
					status, _ := g.Status("zone-1", "")
					now := 0
					if h := typeOf(status, all[0].Type, "toGlobal").Held; h != nil {
						now = h.Count
					}
					return count(above, all[0].Type) == left && now == held && (status.NewZoneStore != nil) == strange
				})
			}
			wantHeld(tt.left, tt.held, tt.held > 0)
			if tt.held == 0 {
				return
			}
			if tt.lacking < 10 {
				remove(t, own, all[9].Key)
				eventually(t, "a removal by a person", func() bool { return count(above, all[0].Type) == tt.left-1 })
			}
			if _, err := g.AcceptDeletes(t.Context(), "zone-1", "", ""); err != nil {
				t.Fatal(err)
			}
			wantHeld(count(own, all[0].Type), 0, false)
			eventually(t, "the other store to be the one that is known", func() bool { return kept.now() == otherStore })
		})
	}
}

// namedStore is a zone's own store with a name, and without a lineage.
type namedStore string

// Announce implements OwnStore.
func (n namedStore) Announce(context.Context, lineage.Seen) (string, lineage.Seen, bool, error) {
	return string(n), lineage.Seen{}, false, nil
}

// typesOf returns the number of types that travel in a direction.
func typesOf(d exchange.Direction) int {
	types := 0
	for _, one := range resources.Descriptors() {
		if d.Carries(one) {
			types++
		}
	}
	return types
}
