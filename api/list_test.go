package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
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
	Next     *string
	Revision uint64
}

func (f *fixture) page(t *testing.T, path string) page {
	t.Helper()
	var p page
	if err := json.Unmarshal([]byte(f.mustCall(t, "GET", path, "")), &p); err != nil {
		t.Fatal(err)
	}
	return p
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
	if none := f.page(t, path+"?size=0&watch=0"); none.Total != 26 || len(none.Items) != 0 || none.Next != nil || none.Revision == 0 {
		t.Errorf("a list that only counts: %+v", none)
	}
	for _, bad := range []string{"?size=-1", "?size=1001", "?size=x", "?offset=-1", "?filter[name]=x",
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
