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

	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
)

// page is a list in the form that clients read.
type page struct {
	Total int
	Items []struct {
		Type, Mesh, Name, Namespace, KRI string
		Labels                           map[string]string
		Zone, ZoneInsight                map[string]any
		Dataplane, DataplaneInsight      map[string]any
	}
	Next *string
}

func (f *fixture) page(t *testing.T, path string) page {
	t.Helper()
	var p page
	if err := json.Unmarshal([]byte(f.mustCall(t, "GET", path, "")), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

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

func TestLists(t *testing.T) {
	f := alone(t)
	var batch strings.Builder
	for i := range 25 {
		fmt.Fprintf(&batch, "%slabels: {half: %q}\n---\n", permission(fmt.Sprintf("p-%02d", i)), fmt.Sprint(i%2))
	}
	batch.WriteString("type: Mesh\nname: other\n---\n" + strings.ReplaceAll(permission("elsewhere"), "mesh: default",
		"mesh: other"))
	batch.WriteString("---\n" + permission("p-00") + "namespace: team\n")
	f.mustCall(t, "POST", "/_batch", batch.String())

	const path = "/meshes/default/meshtrafficpermissions"
	for query, want := range map[string]int{
		"": 26, "?name=p-1": 10, "?namespace=team": 1, "?namespace=": 25, "?filter[labels.half]=1": 12,
		"?filter%5Blabels.half%5D=0": 13, "?filter[labels.half]=1&name=p-2": 2, "?filter[labels.half]=x": 0,
		"?filter[labels.kuma.io/origin]=zone": 26,
	} {
		if got := f.page(t, path+query); got.Total != want || len(got.Items) != want {
			t.Errorf("%q: want %d, got total %d, %d items", query, want, got.Total, len(got.Items))
		}
	}
	if got := f.page(t, "/meshtrafficpermissions"); got.Total != 27 {
		t.Errorf("across meshes: want 27, got %d", got.Total)
	}
	seen := map[string]bool{}
	pages := 0
	for next := path + "?size=10&namespace="; next != ""; pages++ {
		p := f.page(t, next)
		for _, item := range p.Items {
			if seen[item.Name] {
				t.Errorf("%s is on two pages", item.Name)
			}
			seen[item.Name] = true
		}
		if next = ""; p.Next != nil {
			if !strings.HasPrefix(*p.Next, f.url+"/") {
				t.Fatalf("next is not absolute: %s", *p.Next)
			}
			next = strings.TrimPrefix(*p.Next, f.url)
		}
	}
	if len(seen) != 25 || pages != 3 {
		t.Errorf("want 25 resources on 3 pages, got %d on %d", len(seen), pages)
	}
	all, err := f.client.List(context.Background(), api.ListOptions{Type: resources.TypeMeshTrafficPermission,
		Mesh: "default", Name: "p-"})
	if err != nil || len(all) != 26 {
		t.Errorf("client: want 26, got %d, %v", len(all), err)
	}
	for _, bad := range []string{"?size=0", "?size=1001", "?size=x", "?offset=-1", "?filter[name]=x",
		"?filter[labels.]=x"} {
		if _, e := f.call(t, "GET", path+bad, ""); e == nil || e.Status != 400 || len(e.InvalidParameters) != 1 {
			t.Errorf("%q: want 400 with a field, got %v", bad, e)
		}
	}
	if _, e := f.call(t, "GET", "/meshes/nowhere/meshtrafficpermissions", ""); e == nil || e.Status != 404 {
		t.Errorf("list in an unknown mesh: got %v", e)
	}
}

func TestNamespaces(t *testing.T) {
	f := alone(t)
	const path = "/meshes/default/meshtrafficpermissions/p"
	f.mustCall(t, "PUT", path, permission("p"))
	f.mustCall(t, "PUT", path+"?namespace=team", permission("p")+"namespace: team\n")
	if _, e := f.call(t, "PUT", path, permission("p")+"namespace: team\n"); e == nil ||
		e.InvalidParameters[0].Field != "namespace" {
		t.Errorf("the namespace of the body is not the URL's: got %v", e)
	}
	if got := f.mustCall(t, "GET", path+"?namespace=team", ""); !strings.Contains(got,
		`"kri_mtp_default_zone-1_team_p_"`) {
		t.Errorf("got %s", got)
	}
	f.mustCall(t, "DELETE", path, "")
	f.mustCall(t, "GET", path+"?namespace=team", "")
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

func TestListsOfDataplanes(t *testing.T) {
	f := alone(t)
	f.mustCall(t, "POST", "/_batch", `type: Dataplane
mesh: default
name: web
networking: {address: 10.0.0.1, inbound: [{port: 80, tags: {kuma.io/service: web-frontend, version: v1}}]}
---
type: Dataplane
mesh: default
name: edge
networking: {address: 10.0.0.2, gateway: {tags: {kuma.io/service: edge}}}
---
type: Dataplane
mesh: default
name: built
networking: {address: 10.0.0.3, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}}
`)
	for query, want := range map[string]int{
		"": 3, "?gateway=true": 2, "?gateway=false": 1, "?gateway=builtin": 1, "?gateway=delegated": 1,
		"?tag=kuma.io/service:edge": 2,
		"?tag=kuma.io/service:web":  1, "?tag=kuma.io/service:web&tag=version:v2": 0,
		"?tag=kuma.io/service:edge&gateway=builtin": 1,
	} {
		for _, path := range []string{"/meshes/default/dataplanes", "/meshes/default/dataplanes/_overview",
			"/dataplanes/_overview"} {
			if got := f.page(t, path+query); got.Total != want {
				t.Errorf("%s%s: want %d, got %d", path, query, want, got.Total)
			}
		}
	}
	for _, bad := range []string{"?gateway=x", "?tag=x"} {
		if _, e := f.call(t, "GET", "/meshes/default/dataplanes"+bad, ""); e == nil || e.Status != 400 {
			t.Errorf("%s: want 400, got %v", bad, e)
		}
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
