package kds

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestRandomOperationsConverge runs writes on a global and two zones while sessions break, with small messages and a
// small changelog, and compares each zone's final state with what Filter allows.
func TestRandomOperationsConverge(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { converge(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func converge(t *testing.T, random *rand.Rand) {
	t.Helper()
	small := store.ViewConfig{WindowCommits: 64, WindowChanges: 64}
	g := startGlobal(t, store.NewMemoryWith(small), func(c *GlobalConfig) { c.MaxMessageSize = 1500 })
	accept := func(c *ZoneConfig) {
		c.MaxMessageSize = 1500
		c.AcceptDeletes = func(string, resources.Type) bool { return true }
	}
	stores := map[string]store.Store{"zone-1": store.NewMemoryWith(small), "zone-2": store.NewMemoryWith(small)}
	zones := map[string]*testZone{}
	for name, s := range stores {
		zones[name] = startZone(t, name, g.address, s, accept)
	}
	for range 400 {
		name := fmt.Sprintf("zone-%d", 1+random.IntN(2))
		switch random.IntN(12) {
		case 0:
			g.mu.Lock()
			if s := g.sessions[name]; s != nil {
				s.cancel(ErrDraining)
			}
			g.mu.Unlock()
		case 1:
			if g.store.Snapshot().Get(ZoneKey(name)) != nil {
				put(t, g.store, written(t, globalHome, ZoneKey(name), fmt.Sprintf(`{"enabled":%v}`, random.IntN(3) > 0)))
			}
		case 2, 3, 4, 5:
			randomWrite(t, random, stores[name], zoneHome(name))
		default:
			randomWrite(t, random, g.store, globalHome)
		}
	}
	for name := range zones {
		put(t, g.store, written(t, globalHome, ZoneKey(name), `{"enabled":true}`))
	}
	for name, s := range stores {
		eventually(t, "agreement about "+name, func() bool { return maps.Equal(expected(g, stores, name), copies(s)) })
	}
}

// randomWrite puts or deletes one of few resources, so that they are often changed and created again.
func randomWrite(t *testing.T, random *rand.Rand, s store.Store, home resources.Home) {
	t.Helper()
	key := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: fmt.Sprintf("p%d", random.IntN(20))}
	spec := fmt.Sprintf(`{"targetRef":{"kind":"Mesh"},"to":[{"targetRef":{"kind":"MeshService","name":"backend"},"default":{"idleTimeout":"%ds"}}]}`, random.IntN(1000))
	if home.Zone != "" {
		key.Namespace = "ns"
		if random.IntN(2) == 0 {
			key.Type, spec = resources.TypeMeshService, fmt.Sprintf(`{"ports":[{"port":%d}]}`, 1+random.IntN(1000))
		}
	}
	if random.IntN(3) == 0 {
		remove(t, s, key)
		return
	}
	put(t, s, written(t, home, key, spec))
}

// expected returns what a zone must hold of others: display name and, without references, the spec, by type and owner.
func expected(g *testGlobal, stores map[string]store.Store, zone string) map[string]string {
	want := map[string]string{}
	for _, typ := range []resources.Type{resources.TypeMeshTimeout, resources.TypeMeshService} {
		for r := range g.store.Snapshot().List(store.Query{Type: typ}) {
			if r.Zone() == "" {
				want[fmt.Sprint(typ, ownerOf(r))] = summary(r)
			}
		}
		for other, s := range stores {
			if other == zone {
				continue
			}
			for r := range s.Snapshot().List(store.Query{Type: typ}) {
				if r.Zone() == other && r.Labels[resources.LabelOrigin] == resources.OriginZone {
					want[fmt.Sprint(typ, ownerOf(r))] = summary(r)
				}
			}
		}
	}
	return want
}

func copies(s store.Store) map[string]string {
	have := map[string]string{}
	for _, typ := range []resources.Type{resources.TypeMeshTimeout, resources.TypeMeshService} {
		for r := range s.Snapshot().List(store.Query{Type: typ}) {
			if r.Labels[resources.LabelOrigin] == resources.OriginGlobal {
				have[fmt.Sprint(typ, ownerOf(r))] = summary(r)
			}
		}
	}
	return have
}

// summary returns the part of a spec that no rewriting changes.
func summary(r *resources.Resource) string {
	if p, err := resources.SpecAs[resources.Policy](r); err == nil {
		return string(p.To[0].Default)
	}
	return string(r.Spec.JSON())
}
