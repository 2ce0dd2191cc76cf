package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// TestKRIWherever checks that a KRI finds a resource in any namespace, hashed or not, and that its section is ignored.
func TestKRIWherever(t *testing.T) {
	f := serve(t, resources.Home{Zone: "zone-1", Alone: true})
	for namespace, kri := range map[string]string{"": "kri_mtp_default_zone-1__p_",
		"team": "kri_mtp_default_zone-1_team_p_", "kuma-system": "kri_mtp_default_zone-1_kuma-system_p_"} {
		doc := permission("p")
		if namespace != "" {
			doc = "namespace: " + namespace + "\n" + doc
		}
		f.mustCall(t, "POST", "/_batch", doc)
		var got struct{ KRI, Namespace string }
		if err := json.Unmarshal([]byte(f.mustCall(t, "GET", "/_kri/"+kri+"http", "")), &got); err != nil {
			t.Fatal(err)
		}
		if got.KRI != kri || got.Namespace != namespace {
			t.Errorf("%s: got %+v", kri, got)
		}
	}
	if _, e := f.call(t, "GET", "/_kri/kri_mtp_default_zone-2_team_p_", ""); !api.IsNotFound(e) {
		t.Errorf("another zone's: got %v", e)
	}
}

// TestExplicitForm checks items and lists in explicit form, and that the stored form stays as it was written.
func TestExplicitForm(t *testing.T) {
	f := serve(t, resources.Home{Zone: "zone-1", Alone: true})
	f.mustCall(t, "POST", "/_batch", "type: MeshTimeout\nmesh: default\nnamespace: team\nname: p\nspec: {to: [{targetRef: {kind: MeshService, name: b}, default: {idleTimeout: 1s}}]}\n")
	const item = "/meshes/default/meshtimeouts/p?namespace=team"
	for path, want := range map[string]bool{
		item: false, item + "&form=explicit": true, "/meshes/default/meshtimeouts": false,
		"/meshes/default/meshtimeouts?form=explicit": true, "/meshtimeouts?form=explicit": true,
	} {
		got := f.mustCall(t, "GET", path, "")
		if strings.Contains(got, `"namespace": "team"`) != true || strings.Count(got, `"kind": "Mesh"`) == 1 != want {
			t.Errorf("%s: got %s", path, got)
		}
	}
	for _, path := range []string{item + "&form=short", "/meshtimeouts?form=short"} {
		if _, e := f.call(t, "GET", path, ""); e == nil || e.Status != 400 || e.InvalidParameters[0].Field != "form" {
			t.Errorf("%s: got %v", path, e)
		}
	}
}
