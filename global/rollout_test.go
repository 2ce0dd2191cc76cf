package global_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// told is a zone's report on its proxies.
type told struct {
	behind  []tracker.ProxyBehind
	streams uint32
}

// proxiesAnswer is the part of a rollout about proxies, and the text about one whose state is unknown.
type proxiesAnswer struct {
	Proxies struct {
		Enforced, Total int
		Behind          []tracker.ProxyBehind
		Unknown         []tracker.ProxyUnknown
	}
}

// TestRolloutCountsWhatWasTold checks that a proxy counts as enforcing only if its zone's report covers it: not if the
// report names too few, and not if it connected later. No clock decides: the zone's is a day ahead.
func TestRolloutCountsWhatWasTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir)
	home := resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}
	ahead := store.NewMemoryWith(store.ViewConfig{Now: func() time.Time { return time.Now().Add(24 * time.Hour) }})
	durable, status := ahead, store.NewMemory()
	put := func(s store.Store, typ resources.Type, name, spec string) {
		t.Helper()
		parsed, err := resources.NewSpec(typ, []byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		one := home.Labelled(&resources.Resource{Key: resources.Key{Type: typ, Mesh: "default", Name: name}, Spec: parsed})
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: one}}}); err != nil {
			t.Fatal(err)
		}
	}
	many := make([]tracker.ProxyBehind, 10_001)
	for i := range many {
		many[i] = tracker.ProxyBehind{Mesh: "default", Name: fmt.Sprint("other-", i)}
	}
	put(durable, resources.TypeDataplane, "backend", `{"networking":{"address":"127.0.0.1","inbound":[{"port":80}]}}`)
	put(status, resources.TypeDataplaneInsight, "backend",
		`{"subscriptions":[{"id":"1","connectTime":"2026-01-01T00:00:00Z","generation":7}]}`)
	put(durable, resources.TypeMeshTrafficPermission, "own",
		`{"default":{"deny":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/"}}]}}`)
	var tells atomic.Pointer[told]
	tells.Store(&told{behind: many, streams: 7})
	disconnect := r.connect(dir, "zone-1", durable, func(c *kds.ZoneConfig) {
		c.Status, c.Proxies = status, func(func(uint64) bool) ([]tracker.ProxyBehind, uint32) {
			now := tells.Load()
			return now.behind, now.streams
		}
	})
	stored := func(name, value string) {
		t.Helper()
		body := fmt.Sprintf(`{"type":"MeshTrafficPermission","mesh":"default","name":%q,"spec":{"default":{"deny":[{"spiffeId":{"type":"Prefix","value":%q}}]}}}`, name, value)
		if code, body := r.call("PUT", "/meshes/default/meshtrafficpermissions/"+name, body); code/100 != 2 {
			t.Fatal(code, body)
		}
	}
	asks := func(name string, want func(*proxiesAnswer) bool) {
		t.Helper()
		var last string
		wait(t, "what is told of "+name, func() bool {
			answer := &proxiesAnswer{}
			var code int
			code, last = r.call("GET", "/_rollout/MeshTrafficPermission/default/"+name, "")
			return code == 200 && json.Unmarshal([]byte(last), answer) == nil && answer.Proxies.Total == 1 && want(answer)
		})
	}
	unknown := func(why string) func(*proxiesAnswer) bool {
		return func(a *proxiesAnswer) bool {
			return a.Proxies.Enforced == 0 && len(a.Proxies.Unknown) == 1 && strings.Contains(a.Proxies.Unknown[0].Reason, why)
		}
	}
	enforced := func(a *proxiesAnswer) bool { return a.Proxies.Enforced == 1 }

	stored("p", "spiffe://a/")
	asks("p", unknown("more proxies that are behind than it names, 1"))
	tells.Store(&told{streams: 6}) // sent before the proxy's stream was opened
	stored("p", "spiffe://b/")
	asks("p", unknown("has not told of it"))
	tells.Store(&told{streams: 7})
	stored("p", "spiffe://c/")
	asks("p", enforced)
	asks(hashing.Name("default", "own", "zone-1", ""), enforced)
	disconnect()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}
