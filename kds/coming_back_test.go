package kds

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// follower is a peer that applies what it is sent.
type follower struct {
	*peer
	mu sync.Mutex
	// has holds the versions of each type, and listed those of a list's parts so far.
	has, listed map[string]map[string]string // guarded by mu
}

var followed = []resources.Type{resources.TypeMeshTimeout, resources.TypeMeshService}

// follow connects a zone that has these versions.
func follow(t *testing.T, zone, target string, features exchange.Features,
	have map[string]map[string]string) *follower {
	t.Helper()
	f := &follower{peer: dialPeer(t, zone, target, features), has: map[string]map[string]string{},
		listed: map[string]map[string]string{}}
	f.openDown()
	for _, typ := range followed {
		f.has[string(typ)], f.listed[string(typ)] = maps.Clone(have[string(typ)]), map[string]string{}
		f.subscribe(typ, have[string(typ)])
	}
	go func() {
		for receive := openedFrames(f.down.Recv); ; {
			m, err := receive()
			if err != nil {
				return
			}
			f.take(m)
			if f.down.Send(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: zone}, TypeUrl: m.GetTypeUrl(),
				ResponseNonce: m.GetNonce()}) != nil {
				return
			}
		}
	}()
	return f
}

func (f *follower) take(m *discovery.DeltaDiscoveryResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	typ, words := m.GetTypeUrl(), strings.Fields(m.GetSystemVersionInfo())
	into := f.has[typ]
	if slices.Contains(words, "list") {
		into = f.listed[typ]
	}
	for _, r := range m.GetResources() {
		into[r.GetName()] = r.GetVersion()
	}
	for _, name := range m.GetRemovedResources() {
		delete(into, name)
	}
	if slices.Contains(words, "list") && !slices.Contains(words, "more") {
		f.has[typ], f.listed[typ] = into, map[string]string{}
	}
}

// copies returns what the peer has now.
func (f *follower) copies() map[string]map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]map[string]string{}
	for typ, has := range f.has {
		out[typ] = maps.Clone(has)
	}
	return out
}

// TestZonesThatComeBackGetWhatIsTheirs connects zones of which three say that they have the same, while changes are
// written. Each zone ends up with what it gets if it has nothing, also if that is not the same for all. Lists need
// several messages. What was shared is dropped once nobody needs it.
func TestZonesThatComeBackGetWhatIsTheirs(t *testing.T) {
	for name, row := range map[string]struct {
		owned  bool
		lesser exchange.Features // what every other zone lacks
	}{
		"the same for all":      {},
		"two zones' among them": {owned: true},
		"features that differ":  {owned: true, lesser: exchange.FeatureFrames | exchange.FeatureProducerPolicies},
	} {
		t.Run(name, func(t *testing.T) {
			g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.MaxMessageSize = 4 << 10 })
			keys := timeouts(t, g.store, "a", 100)
			zones := []string{"zone-1", "zone-2", "zone-3", "zone-4", "zone-5"}
			for i, zone := range zones[:2] {
				if s := store.NewMemory(); row.owned {
					produce(t, s, zone)
					z := startZone(t, zone, g.address, s)
					eventually(t, "what "+zone+" wrote", func() bool { return count(g.store, resources.TypeMeshTimeout) == 100+i+1 })
					z.stop()
				}
			}
			featuresOf := func(i int) exchange.Features {
				if i%2 == 1 {
					return exchange.OwnFeatures() &^ row.lesser
				}
				return exchange.OwnFeatures()
			}
			fresh := follow(t, zones[4], g.address, featuresOf(0), nil)
			timeouts := string(resources.TypeMeshTimeout)
			eventually(t, "a list", func() bool { return len(fresh.copies()[timeouts]) >= 100 })
			have := fresh.copies()
			for i, name := range slices.Sorted(maps.Keys(have[timeouts])) {
				switch i % 4 {
				case 0:
					delete(have[timeouts], name)
				case 1:
					have[timeouts][name] = "old"
				}
				have[timeouts][fmt.Sprintf("gone-%d.default", i)] = "1"
			}
			less := map[string]map[string]string{timeouts: maps.Clone(have[timeouts])}
			maps.DeleteFunc(less[timeouts], func(_, version string) bool { return version == "1" })
			for i := range 50 { // others that are gone
				less[timeouts][fmt.Sprintf("past-%d.default", i)] = "1"
			}
			var writing sync.WaitGroup
			writing.Go(func() {
				for _, key := range keys[:10] {
					remove(t, g.store, key)
				}
			})
			back := make([]*follower, len(zones))
			for i, zone := range zones {
				back[i] = follow(t, zone, g.address, featuresOf(i), []map[string]map[string]string{have, have, have, less, nil}[i])
			}
			writing.Wait()
			other := startGlobal(t, g.store)
			for i, zone := range zones {
				want := follow(t, zone, other.address, featuresOf(i), nil)
				eventually(t, zone+" to have what a new zone gets", func() bool {
					return reflect.DeepEqual(back[i].copies(), want.copies())
				})
			}
			for _, f := range append(back, fresh) {
				_ = f.conn.Close()
			}
			eventually(t, "what was shared to be dropped", func() bool {
				runtime.GC()
				chunks, inventories := g.encoder.chunks, g.encoder.inventories
				chunks.mu.Lock()
				defer chunks.mu.Unlock()
				inventories.mu.Lock()
				defer inventories.mu.Unlock()
				return len(chunks.made) == 0 && len(chunks.packing) == 0 && len(inventories.known) == 0
			})
		})
	}
}
