package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// write stores a resource without the API, as sync and status writers do.
func write(t *testing.T, s store.Store, key resources.Key, labels map[string]string, spec string) {
	t.Helper()
	body, err := resources.NewSpec(key.Type, []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	r := &resources.Resource{Key: key, Labels: labels, Spec: body}
	if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
		t.Fatal(err)
	}
}

func TestWhereTypesAreWritten(t *testing.T) {
	dataplane := "type: Dataplane\nmesh: default\nname: d\nnetworking: {address: 10.0.0.1, inbound: [{port: 80}]}\n"
	mesh := "type: Mesh\nname: m\n"
	zone := serve(t, resources.Home{Zone: "zone-1"})
	write(t, zone.store, resources.Key{Type: resources.TypeMesh, Name: "default"},
		map[string]string{resources.LabelOrigin: resources.OriginGlobal}, "{}")
	for name, c := range map[string]struct {
		f            *fixture
		path, body   string
		want         int
		wantInReason string
	}{
		"dataplane on the global":      {global(t), "/meshes/default/dataplanes/d", dataplane, 405, "zone"},
		"mesh in a zone":               {zone, "/meshes/m", mesh, 405, "global"},
		"dataplane in a zone":          {zone, "/meshes/default/dataplanes/d", dataplane, 0, ""},
		"mesh in a zone that is alone": {alone(t), "/meshes/m", mesh, 0, ""},
		"zone insight":                 {global(t), "/zone-insights/z", "type: ZoneInsight\nname: z\n", 405, "read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			before := contents(c.f.store)
			_, put := c.f.call(t, "PUT", c.path, c.body)
			_, batch := c.f.call(t, "POST", "/_batch", c.body)
			if c.want == 0 {
				if put != nil || batch != nil {
					t.Fatalf("refused: %v, %v", put, batch)
				}
				return
			}
			if put == nil || put.Status != c.want || !strings.Contains(put.Detail, c.wantInReason) {
				t.Errorf("PUT: want %d about %q, got %v", c.want, c.wantInReason, put)
			}
			if batch == nil || batch.Status != 400 || batch.InvalidParameters[0].Field != "type" {
				t.Errorf("batch: want 400 about the type, got %v", batch)
			}
			if contents(c.f.store) != before {
				t.Error("something was stored")
			}
		})
	}
}

func TestCopiesStayAsTheyAre(t *testing.T) {
	f := global(t)
	key := resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Name: "p-6czzcxb6vc2w9f74"}
	write(t, f.store, key, map[string]string{
		resources.LabelOrigin: resources.OriginZone, resources.LabelZone: "zone-1", resources.LabelDisplayName: "p",
		resources.LabelMesh: "default",
	}, `{"default":{}}`)
	before := contents(f.store)
	path := "/meshes/default/meshtrafficpermissions/" + key.Name
	_, put := f.call(t, "PUT", path, permission(key.Name))
	_, deleted := f.call(t, "DELETE", path, "")
	for _, e := range []*api.Error{put, deleted} {
		if e == nil || e.Status != 400 || e.InvalidParameters[0].Field != `labels["kuma.io/origin"]` ||
			!strings.Contains(e.InvalidParameters[0].Reason, "zone zone-1") {
			t.Errorf("want 400 that names zone-1, got %v", e)
		}
	}
	if contents(f.store) != before {
		t.Error("the copy changed")
	}
	if got := f.mustCall(t, "GET", "/_kri/kri_mtp_default_zone-1__p_", ""); !strings.Contains(got, key.Name) {
		t.Errorf("by KRI: got %s", got)
	}
	for kri, want := range map[string]int{"kri_mtp_default___p_": 404, "kri_mtp_default_zone-1__p_section": 0,
		"kri_xx_default___p_": 400, "nonsense": 400, "kri_m____default_": 0} {
		_, e := f.call(t, "GET", "/_kri/"+kri, "")
		if (e == nil) != (want == 0) || e != nil && e.Status != want {
			t.Errorf("%s: want %d, got %v", kri, want, e)
		}
	}
}

func TestMeshes(t *testing.T) {
	f := global(t)
	f.mustCall(t, "POST", "/_batch", "type: MeshTimeout\nmesh: new\nname: t\nspec: {to: [{targetRef: {kind: Mesh}, default: {idleTimeout: 1h}}]}\n---\ntype: Mesh\nname: new\n")
	if _, e := f.call(t, "DELETE", "/meshes/new", ""); e == nil || e.Status != 400 ||
		!strings.Contains(e.Error(), "MeshTimeout new/t") {
		t.Errorf("a mesh with a resource: got %v", e)
	}
	f.mustCall(t, "DELETE", "/meshes/new/meshtimeouts/t", "")
	// A connected zone withdraws what it publishes automatically, so this does not prevent the deletion of the mesh.
	spec, err := resources.NewSpec(resources.TypeMeshTrust,
		[]byte(`{"trustDomain":"new.zone-1.mesh.local","caBundles":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	trust := &resources.Resource{Key: resources.Key{Type: resources.TypeMeshTrust, Mesh: "new",
		Name: "identity-zone-1-hash"}, Spec: spec,
		Labels: map[string]string{resources.LabelOrigin: resources.OriginZone, resources.LabelZone: "zone-1",
			resources.LabelDisplayName: "identity-zone-1"}}
	if _, err := f.store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: trust}}}); err != nil {
		t.Fatal(err)
	}
	f.mustCall(t, "DELETE", "/meshes/new", "")
	if _, e := f.call(t, "PUT", "/meshes/new/meshtrafficpermissions/p", strings.ReplaceAll(permission("p"), "default\n",
		"new\n")); e == nil || e.InvalidParameters[0].Field != "mesh" {
		t.Errorf("a mesh that is gone: got %v", e)
	}
	if err := api.EnsureDefaultMesh(context.Background(), f.store, resources.Home{}); err != nil ||
		f.page(t, "/meshes").Total != 1 {
		t.Errorf("the default mesh is there once: %v", err)
	}
}

func TestStatusIsKept(t *testing.T) {
	f := alone(t)
	const service = "type: MeshService\nmesh: default\nname: s\nspec: {ports: [{port: 80}]}\nstatus: {ignored: true}\n"
	f.mustCall(t, "PUT", "/meshes/default/meshservices/s", service)
	key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "s"}
	with := f.store.Snapshot().Get(key).Clone()
	with.Status = json.RawMessage(`{"vips":[{"ip":"240.0.0.1"}]}`)
	if _, err := f.store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: with}}}); err != nil {
		t.Fatal(err)
	}
	f.mustCall(t, "PUT", "/meshes/default/meshservices/s", strings.ReplaceAll(service, "80", "81"))
	got, err := f.client.Get(context.Background(), key)
	if err != nil || string(got.Status) != string(with.Status) || got.CreationTime.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestOverviews(t *testing.T) {
	f := global(t)
	f.mustCall(t, "PUT", "/zones/zone-1", "type: Zone\nname: zone-1\n")
	write(t, f.status, resources.Key{Type: resources.TypeZoneInsight, Name: "zone-1"}, nil,
		`{"subscriptions":[{"id":"1","connectTime":"2026-01-01T00:00:00Z"}]}`)
	zones := f.page(t, "/zones/_overview")
	if zones.Total != 1 || zones.Items[0].Type != "ZoneOverview" ||
		zones.Items[0].ZoneInsight["subscriptions"] == nil || zones.Items[0].Zone == nil {
		t.Errorf("got %+v", zones)
	}
	f.mustCall(t, "GET", "/zones/zone-1/_overview", "")
	if got := f.page(t, "/zone-insights"); got.Total != 1 {
		t.Errorf("live status is listed: got %d", got.Total)
	}
	if _, e := f.call(t, "DELETE", "/zones/zone-1", ""); e == nil || e.Status != 400 {
		t.Errorf("a connected zone is not deleted: got %v", e)
	}
	proxy := resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "d-hash"}
	labels := map[string]string{resources.LabelOrigin: resources.OriginZone, resources.LabelZone: "zone-1"}
	write(t, f.store, proxy, labels, `{"networking":{"address":"10.0.0.1"}}`)
	proxy.Type = resources.TypeDataplaneInsight
	write(t, f.store, proxy, labels, `{"subscriptions":[{"id":"1"}]}`)
	proxies := f.page(t, "/meshes/default/dataplanes/_overview")
	if proxies.Total != 1 || proxies.Items[0].DataplaneInsight["subscriptions"] == nil {
		t.Errorf("got %+v", proxies)
	}
	var insight api.GlobalInsight
	if err := json.Unmarshal([]byte(f.mustCall(t, "GET", "/global-insight", "")), &insight); err != nil {
		t.Fatal(err)
	}
	write(t, f.store, resources.Key{Type: resources.TypeZoneIngress, Name: "in"}, labels, `{"networking":{"address":"10.0.0.1","port":1}}`)
	if text := f.mustCall(t, "GET", "/global-insight", ""); !regexp.MustCompile(`"zoneIngresses": \{\s*"total": 1\s*\}`).MatchString(text) {
		t.Errorf("an ingress of a zone is not counted, or said to be online or not: %s", text)
	}
	if insight.Zones.ControlPlanes.Online != 1 || insight.Dataplanes.Standard.Online != 1 || insight.Meshes.Total != 1 {
		t.Errorf("got %+v", insight)
	}
}

func TestCatalogue(t *testing.T) {
	f := global(t)
	for path, want := range map[string]string{
		"/":           `"product": "Causeway"`,
		"/_resources": `"path": "meshtrafficpermissions"`,
		"/policies":   `"pluralDisplayName": "Mesh Retries"`,
		"/who-am-i":   `"mesh-system:anonymous"`,
	} {
		if got := f.mustCall(t, "GET", path, ""); !strings.Contains(got, want) {
			t.Errorf("%s: want %s in %s", path, want, got)
		}
	}
	for _, path := range []string{"/nonsense", "/meshes/default/meshes/a", "/meshtimeouts/a",
		"/meshes/default/nonsense/a"} {
		if _, e := f.call(t, "GET", path, ""); e == nil || e.Status != 404 {
			t.Errorf("%s: want 404, got %v", path, e)
		}
	}
	if _, e := f.call(t, "PATCH", "/meshes/default", "{}"); e == nil || e.Status != 405 {
		t.Errorf("PATCH: want 405, got %v", e)
	}
	if _, e := f.call(t, "GET", "/meshes/default?format=xml", ""); e == nil || e.Status != 400 {
		t.Errorf("format: want 400, got %v", e)
	}
	if _, e := f.call(t, "GET", "/meshes/default?x="+strings.Repeat("y", 9<<10), ""); e == nil || e.Status != 414 {
		t.Errorf("long URL: want 414, got %v", e)
	}
}

// failing is a store that cannot write.
type failing struct {
	*store.Memory
	err error
}

func (f failing) Apply(context.Context, store.Batch) (*store.Commit, error) { return nil, f.err }

func TestErrorsOfTheStore(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{fmt.Errorf("disk: %w", store.ErrUnavailable), 503}, {store.ErrClosed, 503}, {store.ErrConflict, 409},
		{errors.New("surprise"), 500}, {context.DeadlineExceeded, 503},
	} {
		srv := httptest.NewServer(api.New(api.Config{Store: failing{store.NewMemory(), c.err}}))
		f := &fixture{url: srv.URL}
		f.client, _ = api.NewClient(api.ClientConfig{Address: srv.URL})
		_, e := f.call(t, "PUT", "/meshes/default/meshtrafficpermissions/p", permission("p"))
		if e == nil || e.Status != c.want || e.Title == "" || e.Detail == "" || e.Details != e.Detail {
			t.Errorf("%v: want %d, got %+v", c.err, c.want, e)
		}
		if e != nil && c.want == 500 && strings.Contains(e.Error(), "surprise") {
			t.Error("the answer tells what is for the log")
		}
		f.client.CloseIdleConnections()
		srv.Close()
	}
}

func TestPanicIsAnswered(t *testing.T) {
	s := api.New(api.Config{Store: store.NewMemory(), Panics: panics.New(slog.New(slog.DiscardHandler))})
	s.Handle(api.RouteProxyRules, func(http.ResponseWriter, *http.Request) error { panic("no") })
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/meshes/default/dataplanes/d/_rules", nil))
	if rec.Code != 500 || !strings.Contains(rec.Body.String(), `"title"`) {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}

// TestConcurrentWrites checks that concurrent writes to the same resource and to different ones are all stored.
func TestConcurrentWrites(t *testing.T) {
	f := global(t)
	const writers, writes = 8, 20
	done := make(chan error, writers)
	for w := range writers {
		go func() {
			var err error
			for i := range writes {
				body := permission(fmt.Sprintf("p-%d-%d", w, i)) + "---\n" + permission("shared") +
					fmt.Sprintf("labels: {writer: \"%d\"}\n", w)
				_, e := f.client.ApplyDocuments(context.Background(), []byte(body), "application/yaml")
				err = errors.Join(err, e)
			}
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := f.page(t, "/meshtrafficpermissions").Total; got != writers*writes+1 {
		t.Errorf("want %d, got %d", writers*writes+1, got)
	}
}
