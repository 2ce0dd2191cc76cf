package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// TestInsightCountsGatewaysAndEgresses checks the counts of proxies by purpose, that a gateway is one service however
// many proxies it has, and that nothing is claimed about disconnected zones.
func TestInsightCountsGatewaysAndEgresses(t *testing.T) {
	f := serveConfig(t, api.Config{Absent: func(zone string) *api.Unknown {
		if zone == "zone-2" {
			return &api.Unknown{Reason: "away"}
		}
		return nil
	}})
	put := func(name, zone, networking string, online bool) {
		t.Helper()
		labels := map[string]string{resources.LabelOrigin: resources.OriginZone, resources.LabelZone: zone}
		key := resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: name}
		write(t, f.store, key, labels, `{"networking": {"address": "10.0.0.1", `+networking+`}}`)
		if online {
			key.Type = resources.TypeDataplaneInsight
			write(t, f.store, key, labels, `{"subscriptions": [{"id": "1"}]}`)
		}
	}
	gateway := func(kind, service string) string {
		return fmt.Sprintf(`"gateway": {"type": %q, "tags": {"kuma.io/service": %q}}`, kind, service)
	}
	const egress = `"listeners": [{"type": "ZoneEgress", "port": 1, "name": "out"}]`
	counts := func() (got api.GlobalInsight) {
		t.Helper()
		if err := json.Unmarshal([]byte(f.mustCall(t, "GET", "/global-insight", "")), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}

	put("edge-1", "zone-1", gateway("BUILTIN", "edge"), true)
	put("edge-2", "zone-1", gateway("BUILTIN", "edge"), false)
	put("inner-1", "zone-1", gateway("BUILTIN", "inner"), true)
	put("old-1", "zone-1", gateway("DELEGATED", "old"), false)
	put("out-1", "zone-1", egress, true)
	put("out-2", "zone-1", egress, false)
	put("ready", "zone-1", `"inbound": [{"port": 1}, {"port": 2, "state": "Ignored"}]`, true)
	put("half", "zone-1", `"inbound": [{"port": 1}, {"port": 2, "state": "NotReady"}]`, true)
	put("sick", "zone-1", `"inbound": [{"port": 1, "health": {"ready": false}}]`, true)
	got := counts()
	for _, tt := range []struct {
		of        string
		got, want api.ProxyTotal
	}{
		{"built-in", got.Dataplanes.GatewayBuiltin, api.ProxyTotal{Online: 2, Offline: 1, Total: 3}},
		{"delegated", got.Dataplanes.GatewayDelegated, api.ProxyTotal{Offline: 1, Total: 1}},
		{"standard", got.Dataplanes.Standard, api.ProxyTotal{Online: 2, Offline: 1, PartiallyDegraded: 2, Total: 5}},
		{"services", got.Services.GatewayBuiltin, api.ProxyTotal{Online: 1, PartiallyDegraded: 1, Total: 2}},
		{"delegated services", got.Services.GatewayDelegated, api.ProxyTotal{Offline: 1, Total: 1}},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.of, tt.got, tt.want)
		}
	}
	if e := got.Zones.ZoneEgresses; e.Total != 2 || e.Online == nil || *e.Online != 1 {
		t.Errorf("egresses: got %+v", e)
	}

	put("edge-3", "zone-2", gateway("BUILTIN", "edge"), true)
	put("out-3", "zone-2", egress, true)
	write(t, f.store, resources.Key{Type: resources.TypeZone, Name: "zone-2"}, nil, `{}`)
	got = counts()
	if want := (api.ProxyTotal{Online: 1, Unknown: 1, Total: 2}); got.Services.GatewayBuiltin != want {
		t.Errorf("services, one of which has a proxy of a zone that is away: got %+v", got.Services.GatewayBuiltin)
	}
	if e := got.Zones.ZoneEgresses; e.Total != 3 || e.Online != nil {
		t.Errorf("egresses, one of which is of a zone that is away: got %+v", e)
	}
	if got.Zones.ControlPlanes != (api.OnlineTotal{Unknown: 1, Total: 1}) {
		t.Errorf("zones, of which nothing is known: got %+v", got.Zones.ControlPlanes)
	}
}

// TestInsightsBesideTheirProxies has insights without a proxy and proxies without an insight before, between and after
// those that have both, in both stores: each proxy counts by its own, in the totals and in the list of those with problems.
func TestInsightsBesideTheirProxies(t *testing.T) {
	f := serveConfig(t, api.Config{})
	f.mustCall(t, "PUT", "/meshes/other", "type: Mesh\nname: other\n")
	const open, closed = `{"subscriptions": [{"id": "1"}]}`, `{"subscriptions": [{"id": "1", "disconnectTime": "2026-01-01T00:00:00Z"}]}`
	const ill = `{"metadata": {"problems": {"policies": "p has no effect"}}, "subscriptions": [{"id": "1"}]}`
	var want []string
	for i, one := range []struct {
		mesh, namespace, name, insight string
		live, alone                    bool
	}{
		{"default", "", "a", open, true, true},
		{"default", "", "b", "", false, false},
		{"default", "", "c", ill, true, false},
		{"default", "ns", "a", open, true, true},
		{"default", "ns", "b", closed, false, false},
		{"default", "ns", "c", "", false, false},
		{"default", "ns-2", "a", ill, false, false},
		{"other", "", "a", open, true, false},
		{"other", "", "b", ill, true, true},
		{"other", "ns", "a", ill, true, false},
		{"other", "ns", "b", "", false, false},
		{"other", "ns", "c", open, false, true},
	} {
		key := resources.Key{Type: resources.TypeDataplane, Mesh: one.mesh, Namespace: one.namespace, Name: one.name}
		if !one.alone {
			write(t, f.store, key, nil, fmt.Sprintf(`{"networking": {"address": "10.0.0.%d"}}`, i+1))
		}
		if !one.alone && one.insight == ill {
			want = append(want, one.mesh+"/"+one.namespace+"/"+one.name)
		}
		key.Type = resources.TypeDataplaneInsight
		into := f.store
		if one.live {
			into = f.status
		}
		if one.insight != "" {
			write(t, into, key, nil, one.insight)
		}
	}
	var insight api.GlobalInsight
	if err := json.Unmarshal([]byte(f.mustCall(t, "GET", "/global-insight", "")), &insight); err != nil {
		t.Fatal(err)
	}
	if got, want := insight.Dataplanes.Standard, (api.ProxyTotal{Online: 4, Offline: 4, Total: 8}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for of, want := range map[resources.Type]int{resources.TypeDataplane: 8, resources.TypeDataplaneInsight: 9, resources.TypeMesh: 2} {
		if got := insight.Resources[string(of)].Total; got != want {
			t.Errorf("%s: counts %d, want %d", of, got, want)
		}
	}
	var list struct {
		Items []struct{ Mesh, Namespace, Name string }
	}
	if err := json.Unmarshal([]byte(f.mustCall(t, "GET", "/dataplanes/_overview?problems=true", "")), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range list.Items {
		got = append(got, one.Mesh+"/"+one.Namespace+"/"+one.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("with problems: got %v, want %v", got, want)
	}
}
