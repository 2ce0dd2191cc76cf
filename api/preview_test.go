package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

func (f *fixture) forecast(t *testing.T, method, path, body string) api.Forecast {
	t.Helper()
	var out api.Forecast
	if err := json.Unmarshal([]byte(f.mustCall(t, method, path, body)), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func outcomes(f api.Forecast) []string {
	var out []string
	for _, item := range f.Results {
		out = append(out, item.Name+" "+item.Result+" "+string(item.Role))
	}
	return out
}

// TestDryRunStoresNothing checks that a dry run stores nothing and reports exactly what the write then does.
func TestDryRunStoresNothing(t *testing.T) {
	f := serve(t, resources.Home{Zone: "zone-1", Alone: true})
	f.mustCall(t, "POST", "/_batch", permission("same")+"---\n"+permission("other"))
	before := contents(f.store)
	revision := f.store.Snapshot().Revision()
	owner := strings.Replace(permission("new"), "name:", "namespace: team\nname:", 1)
	changed := strings.Replace(permission("other"), "ns/'", "ns/x/'", 1)
	docs := "type: Mesh\nname: second\n---\n" + strings.ReplaceAll(permission("there"), "default\n",
		"second\n") + "---\n" +
		permission("same") + "---\n" + changed + "---\n" + owner
	got := f.forecast(t, "POST", "/_batch?dryRun=server", docs)
	want := []string{"second created ", "there created system", "same unchanged system", "other updated system",
		"new created workload-owner"}
	if !got.DryRun || got.Revision != revision || !slices.Equal(outcomes(got), want) {
		t.Errorf("got %+v, want %q", got, want)
	}
	put := f.forecast(t, "PUT", "/meshes/default/meshtrafficpermissions/other?dryRun=server", changed)
	if !put.DryRun || !slices.Equal(outcomes(put), want[3:4]) {
		t.Errorf("PUT: got %+v", put)
	}
	if after := contents(f.store); after != before || f.store.Snapshot().Revision() != revision {
		t.Errorf("something was stored: %s", after)
	}
	var written api.BatchResult
	if err := json.Unmarshal([]byte(f.mustCall(t, "POST", "/_batch", docs)), &written); err != nil {
		t.Fatal(err)
	}
	for i, item := range written.Results {
		if item.Result != got.Results[i].Result || item.KRI != got.Results[i].KRI {
			t.Errorf("the write did %+v, the dry run said %+v", item, got.Results[i])
		}
	}
}

// TestDryRunRefusesAsAWrite checks that a dry run and a write return the same error, word for word.
func TestDryRunRefusesAsAWrite(t *testing.T) {
	f := serve(t, resources.Home{Zone: "zone-1"})
	for name, body := range map[string]string{
		"invalid":     "type: MeshTimeout\nmesh: default\nname: p\nspec: {}\n",
		"mixed sides": "type: MeshTimeout\nmesh: default\nnamespace: a\nname: p\nspec: {to: [{targetRef: {kind: Mesh}, default: {}}, {targetRef: {kind: MeshService, name: b}, default: {}}]}\n",
		"no mesh":     strings.ReplaceAll(permission("p"), "mesh: default", "mesh: nowhere"),
		"elsewhere":   "type: Mesh\nname: m\n",
		"unknown":     "type: Mush\nname: m\n",
	} {
		_, wrote := f.call(t, "POST", "/_batch", body)
		_, asked := f.call(t, "POST", "/_batch?dryRun=server", body)
		if wrote == nil || asked == nil || wrote.Error() != asked.Error() || wrote.Status != asked.Status {
			t.Errorf("%s: the write said %v, the dry run %v", name, wrote, asked)
		}
	}
}

// TestDryRunOfAnotherKind checks that an unknown kind of dry run writes nothing.
func TestDryRunOfAnotherKind(t *testing.T) {
	f := serve(t, resources.Home{Zone: "zone-1", Alone: true})
	const item = "/meshes/default/meshtrafficpermissions/p"
	f.mustCall(t, "PUT", item, permission("p"))
	before := contents(f.store)
	for _, call := range [][3]string{
		{"POST", "/_batch?dryRun=client", permission("q")}, {"POST", "/_batch?dryRun", permission("q")},
		{"PUT", item + "?dryRun=All", strings.Replace(permission("p"), "ns/'", "ns/x/'", 1)},
		{"DELETE", item + "?dryRun=server", ""},
	} {
		if _, e := f.call(t, call[0], call[1], call[2]); e == nil || e.Status != 400 ||
			e.InvalidParameters[0].Field != "dryRun" {
			t.Errorf("%s %s: got %v", call[0], call[1], e)
		}
	}
	if after := contents(f.store); after != before {
		t.Errorf("something was stored: %s", after)
	}
}

// TestPreviewsComplete checks that preview functions see the store as it would be, and that the response contains what
// they add.
func TestPreviewsComplete(t *testing.T) {
	f := serve(t, resources.Home{Zone: "zone-1", Alone: true}, func(s *api.Server) {
		s.AddPreview(func(p *api.Preview) error {
			for _, c := range p.Changes {
				if p.After.Get(c.New.Key) == nil {
					t.Errorf("%s is not there", c.New.Key)
				}
				c.Forecast.SyncedTo = append(c.Forecast.SyncedTo, "global", "old: "+c.Old.String())
			}
			return nil
		})
	})
	f.mustCall(t, "POST", "/_batch", permission("p"))
	got := f.forecast(t, "POST", "/_batch?dryRun=server", permission("p"))
	if want := []string{"global", "old: MeshTrafficPermission default/p"}; !slices.Equal(got.Results[0].SyncedTo, want) {
		t.Errorf("got %q", got.Results[0].SyncedTo)
	}
}
