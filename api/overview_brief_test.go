package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// sessions has one that has ended and one that lasts, with counts by type, which nobody sees in a list.
const sessions = `{"subscriptions":[{"id":"1","connectTime":"2026-01-01T00:00:00Z","disconnectTime":"2026-01-01T01:00:00Z"},
	{"id":"2","connectTime":"2026-01-01T02:00:00Z","status":{"total":{"responsesSent":"7","responsesAcknowledged":"5","responsesRejected":"1"},
	"lastUpdateTime":"2026-01-01T03:00:00Z"%s},"version":%s}]}`

func TestBriefOverviews(t *testing.T) {
	f := global(t)
	f.mustCall(t, "PUT", "/zones/zone-1", "type: Zone\nname: zone-1\nenabled: false\nlabels: {a: b}\n")
	write(t, f.status, resources.Key{Type: resources.TypeZoneInsight, Name: "zone-1"}, nil,
		fmt.Sprintf(sessions, `,"stat":{"MeshTimeout":{"responsesSent":"7"}}`, `{"kumaCp":{"version":"1.2.3","gitTag":"x"}}`))
	proxy := resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "d-hash"}
	labels := map[string]string{resources.LabelOrigin: resources.OriginZone, resources.LabelZone: "zone-1"}
	write(t, f.store, proxy, labels, `{"networking":{"address":"10.0.0.1"}}`)
	proxy.Type = resources.TypeDataplaneInsight
	write(t, f.store, proxy, labels, `{"metadata":{"problems":{"policies":"p has no effect"},"other":"o"},`+
		fmt.Sprintf(sessions, `,"cds":{"responsesSent":"7"}`, `{"envoy":{"version":"1.40.0"},"kumaDp":{"version":"x"}}`)[1:])

	last := `[{"connectTime":"2026-01-01T02:00:00Z","status":{"total":{"responsesSent":"7","responsesAcknowledged":"5","responsesRejected":"1"}},"version":%s}]`
	for path, want := range map[string]string{
		"/zones/_overview": `{"type":"ZoneOverview","name":"zone-1","kri":"kri_z____zone-1_","zone":{"enabled":false},"zoneInsight":{"subscriptions":` +
			fmt.Sprintf(last, `{"kumaCp":{"version":"1.2.3"}}`) + `}}`,
		"/dataplanes/_overview": `{"type":"DataplaneOverview","mesh":"default","name":"d-hash","kri":"kri_dp_default_zone-1__d-hash_","dataplaneInsight":{"metadata":{"problems":{"policies":"p has no effect"}},"subscriptions":` +
			fmt.Sprintf(last, `{"envoy":{"version":"1.40.0"}}`) + `}}`,
	} {
		var page struct{ Items []any }
		if err := json.Unmarshal([]byte(f.mustCall(t, "GET", path+"?brief=true", "")), &page); err != nil || len(page.Items) != 1 {
			t.Fatalf("%s: got %+v, %v", path, page, err)
		}
		item := page.Items[0].(map[string]any)
		delete(item, "unknown") // no zone has a session with this server
		var wanted map[string]any
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(item, wanted) {
			t.Errorf("%s: got %v, want %v", path, item, wanted)
		}
		whole := f.page(t, path+"?brief=false")
		if insight := whole.Items[0].ZoneInsight; path == "/zones/_overview" && len(insight["subscriptions"].([]any)) != 2 {
			t.Errorf("whole: got %v", insight)
		}
		for _, bad := range []string{"", "1", "yes"} {
			if _, e := f.call(t, "GET", path+"?brief="+bad, ""); e == nil || e.Status != 400 {
				t.Errorf("%s?brief=%s: got %v, want 400", path, bad, e)
			}
		}
	}
}

// TestOverviewsCountWhatIsRefusedNow checks that whole and brief overviews tell what a zone and a proxy refuse now, and
// nothing of what they refused earlier in the session.
func TestOverviewsCountWhatIsRefusedNow(t *testing.T) {
	f := serveConfig(t, api.Config{Refused: func(zone string) int { return map[string]int{"zone-1": 2}[zone] }})
	for _, name := range []string{"zone-1", "zone-2"} {
		write(t, f.store, resources.Key{Type: resources.TypeZone, Name: name}, nil, `{}`)
		write(t, f.status, resources.Key{Type: resources.TypeZoneInsight, Name: name}, nil, fmt.Sprintf(sessions, "", "{}"))
	}
	for name, problems := range map[string]string{"d-1": `{"refused-listener":"a","refused-cluster":"b","certificate":"c"}`, "d-2": `{}`} {
		key := resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: name}
		write(t, f.store, key, nil, `{"networking":{"address":"10.0.0.1"}}`)
		key.Type = resources.TypeDataplaneInsight
		write(t, f.store, key, nil, `{"metadata":{"problems":`+problems+`},`+fmt.Sprintf(sessions, "", "{}")[1:])
	}
	for _, path := range []string{"/zones/_overview", "/dataplanes/_overview"} {
		for _, brief := range []string{"true", "false"} {
			var page struct {
				Items []struct{ Refused int }
			}
			if err := json.Unmarshal([]byte(f.mustCall(t, "GET", path+"?brief="+brief, "")), &page); err != nil {
				t.Fatal(err)
			}
			if len(page.Items) != 2 || page.Items[0].Refused != 2 || page.Items[1].Refused != 0 {
				t.Errorf("%s?brief=%s: got %+v, want 2 and none", path, brief, page.Items)
			}
		}
	}
}
