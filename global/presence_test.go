package global_test

import (
	"encoding/json"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestProxiesOfAZoneThatIsAwayAreUnknown checks that they are unknown in the overview, in the counts and in a rollout,
// and online again, without being resent, once the zone reconnects.
func TestProxiesOfAZoneThatIsAwayAreUnknown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir)
	home := resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}
	durable, status := store.NewMemory(), store.NewMemory()
	put := func(s store.Store, typ resources.Type, spec string) {
		t.Helper()
		parsed, err := resources.NewSpec(typ, []byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		one := home.Labelled(&resources.Resource{Key: resources.Key{Type: typ, Mesh: "default", Name: "backend"},
			Spec: parsed})
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: one}}}); err != nil {
			t.Fatal(err)
		}
	}
	put(durable, resources.TypeDataplane, `{"networking":{"address":"127.0.0.1","inbound":[{"port":80}]}}`)
	put(status, resources.TypeDataplaneInsight, `{"subscriptions":[{"id":"1","connectTime":"2026-01-01T00:00:00Z"}]}`)
	withStatus := func(c *kds.ZoneConfig) {
		c.Status, c.Proxies = status, func(func(uint64) bool) ([]tracker.ProxyBehind, uint32) { return nil, 1 }
	}
	disconnect := r.connect(dir, "zone-1", durable, withStatus)
	if code, body := r.call("PUT", "/meshes/default/meshtrafficpermissions/p",
		`{"type":"MeshTrafficPermission","mesh":"default","name":"p","spec":{"default":{}}}`); code/100 != 2 {
		t.Fatal(code, body)
	}
	shown := func(online int) func() bool {
		return func() bool {
			var overviews struct {
				Items []struct {
					Unknown          *api.Unknown
					DataplaneInsight struct {
						Subscriptions []struct{ DisconnectTime string }
					}
				}
			}
			var counts struct {
				Dataplanes struct{ Standard api.ProxyTotal }
				Zones      struct{ ControlPlanes struct{ Online int } }
			}
			var rollout struct {
				Proxies struct {
					Total   int
					Unknown []struct{ Reason string }
				}
			}
			for path, into := range map[string]any{
				"/meshes/default/dataplanes/_overview": &overviews, "/global-insight": &counts,
				"/_rollout/MeshTrafficPermission/default/p": &rollout,
			} {
				if _, body := r.call("GET", path, ""); json.Unmarshal([]byte(body), into) != nil {
					t.Fatalf("%s answers %s", path, body)
				}
			}
			inOverview := 0
			for _, item := range overviews.Items {
				if (item.Unknown != nil) != (online == 0) || item.Unknown != nil &&
					(item.Unknown.Since.IsZero() || item.Unknown.Reason != "zone zone-1 is offline") {
					return false
				}
			}
			for _, item := range overviews.Items {
				for _, s := range item.DataplaneInsight.Subscriptions {
					if s.DisconnectTime == "" {
						inOverview++
					}
				}
			}
			return len(overviews.Items) == 1 && inOverview == online &&
				counts.Dataplanes.Standard == (api.ProxyTotal{Online: online, Unknown: 1 - online, Total: 1}) &&
				counts.Zones.ControlPlanes.Online == online && rollout.Proxies.Total == 1 &&
				len(rollout.Proxies.Unknown) == 1-online
		}
	}
	wait(t, "the proxy is online", shown(1))
	disconnect()
	wait(t, "the proxy of the zone that left is unknown", shown(0))
	disconnect = r.connect(dir, "zone-1", durable, withStatus)
	wait(t, "the proxy is online again", shown(1))
	disconnect()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	r = start(t, dir)
	var page struct {
		Items []struct{ Unknown *api.Unknown }
	}
	if _, body := r.call("GET", "/meshes/default/dataplanes/_overview", ""); json.Unmarshal([]byte(body), &page) != nil ||
		len(page.Items) != 1 || page.Items[0].Unknown == nil || page.Items[0].Unknown.Since.IsZero() ||
		page.Items[0].Unknown.Reason != "zone zone-1 has not connected since this server started" {
		t.Errorf("after a restart it does not say since when it does not know: %s", body)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}
