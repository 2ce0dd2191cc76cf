package kds

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func TestAChunkHoldsAsLongAsTheTypeDoesNotChange(t *testing.T) {
	t.Parallel()
	ps := newChunks()
	key := chunkKey{typ: resources.TypeMesh, list: true}
	p := &chunk{payload: &payload{}}
	unchangedUpTo := func(revision uint64) func(uint64) bool {
		return func(uint64) bool { return revision >= 9 }
	}
	ps.keep(key, 5, p)
	for _, step := range []struct {
		at      uint64
		changed bool
		found   bool
	}{{5, true, true}, {4, true, false}, {9, true, false}, {9, false, true}, {7, true, true}, {10, true, false}} {
		revision := uint64(9)
		if step.changed {
			revision = 0
		}
		if got := ps.find(key, step.at, unchangedUpTo(revision)) == p; got != step.found {
			t.Errorf("at %d, changed %v: found %v", step.at, step.changed, got)
		}
	}
	newer := &chunk{payload: &payload{}}
	ps.keep(key, 11, newer)
	ps.keep(key, 6, p) // a late one
	if ps.find(key, 11, nil) != newer {
		t.Error("an older chunk took the place of a newer one")
	}
	runtime.KeepAlive(p)
	runtime.KeepAlive(newer)
	eventually(t, "what nobody sends to be forgotten", func() bool {
		runtime.GC()
		ps.mu.Lock()
		defer ps.mu.Unlock()
		return len(ps.made) == 0
	})
}

func TestOneMakesAChunkAndOthersWait(t *testing.T) {
	t.Parallel()
	ps := newChunks()
	key := chunkKey{typ: resources.TypeMesh, list: true}
	done, others := ps.begin(key)
	if others != nil {
		t.Fatal("there is nobody to wait for")
	}
	doneToo, others := ps.begin(key)
	doneToo()
	select {
	case <-others:
		t.Fatal("nobody has made it yet")
	default:
	}
	done()
	<-others
	done()
	if _, others = ps.begin(key); others != nil {
		t.Error("somebody is still at it")
	}
}

// TestListsAreMadeOnce connects zones to a global that holds what is the same for all and, in one case, what is not.
func TestListsAreMadeOnce(t *testing.T) {
	t.Parallel()
	for name, owned := range map[string]bool{"the same for all": false, "one zone's among them": true} {
		t.Run(name, func(t *testing.T) {
			g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.MaxMessageSize = 4 << 10 })
			keys := timeouts(t, g.store, "a", 100)
			stores := map[string]store.Store{}
			for i := range 6 {
				zone := fmt.Sprintf("zone-%d", i)
				stores[zone] = store.NewMemory()
				if owned && zone == "zone-2" {
					produce(t, stores[zone], zone)
				}
				startZone(t, zone, g.address, stores[zone])
			}
			check := func(what string, n int) {
				t.Helper()
				if owned {
					n++
				}
				for zone, s := range stores {
					eventually(t, what+" in "+zone, func() bool { return count(s, resources.TypeMeshTimeout) == n })
					if r := find(s, resources.TypeMeshTimeout, "producer"); owned && (r.Name == "producer") != (zone == "zone-2") {
						t.Errorf("in %s the producer's policy is called %q", zone, r.Name)
					}
				}
			}
			check("the list", 100)
			timeouts(t, g.store, "b", 50)
			check("a change", 150)
			remove(t, g.store, keys[:70]...)
			check("a removal", 80)
			if _, misses := g.Encoder().Stats(); !owned && misses != 150 {
				t.Errorf("%d resources were encoded, want 150", misses)
			}
		})
	}
}

// timeouts writes policies of the global's own.
func timeouts(t *testing.T, s store.Store, prefix string, n int) (keys []resources.Key) {
	t.Helper()
	var rs []*resources.Resource
	for i := range n {
		key := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: fmt.Sprintf("%s%03d", prefix, i)}
		keys = append(keys, key)
		rs = append(rs, written(t, globalHome, key,
			`{"targetRef":{"kind":"Mesh"},"to":[{"targetRef":{"kind":"Mesh"},"default":{"connectionTimeout":"5s"}}]}`))
	}
	put(t, s, rs...)
	return keys
}

// produce writes a zone's service and a policy about it, which goes to all zones but that one.
func produce(t *testing.T, s store.Store, zone string) {
	t.Helper()
	put(t, s,
		written(t, zoneHome(zone), resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "ns",
			Name: "backend"}, `{"ports":[{"port":80}]}`),
		written(t, zoneHome(zone), resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Namespace: "ns",
			Name: "producer"},
			`{"to":[{"targetRef":{"kind":"MeshService","name":"backend"},"default":{"http":{"requestTimeout":"5s"}}}]}`))
}

// TestZonesThatHaveTheSameGetTheSame checks that a list is compared once with what several zones have, and not with what
// another has.
func TestZonesThatHaveTheSameGetTheSame(t *testing.T) {
	t.Parallel()
	d, _ := resources.Lookup(resources.TypeMeshTimeout)
	k := &packer{senderConfig: &senderConfig{direction: exchange.GlobalToZone}}
	all := newInventories()
	keyOf := func(have map[string]string) chunkKey {
		sub := &subscription{descriptor: d}
		if have != nil {
			sub.have = all.share(have)
		}
		key, shareable := k.chunkKey(sub, &transfer{list: true})
		if !shareable {
			t.Fatalf("what goes to zones that have %v is for one alone", have)
		}
		return key
	}
	a, b := map[string]string{"a.default": "1", "b.default": "2"}, map[string]string{"b.default": "2", "a.default": "1"}
	first := keyOf(a)
	if keyOf(b) != first {
		t.Error("zones that have the same do not get the same message")
	}
	for name, have := range map[string]map[string]string{"nothing": nil, "other versions": {"a.default": "2", "b.default": "1"},
		"less": {"a.default": "1"}} {
		if keyOf(have) == first {
			t.Errorf("a zone that has %s gets the same message", name)
		}
	}
}
