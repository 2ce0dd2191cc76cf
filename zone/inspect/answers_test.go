package inspect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	backend = "/meshes/default/dataplanes/backend/"
	inShop  = "?namespace=shop"
)

// TestAnswers compares each endpoint's whole answer with testdata, and checks it against the document.
func TestAnswers(t *testing.T) {
	hashed := "/meshes/default/dataplanes/" + hashing.Name("default", "backend", "zone-1", "shop") + "/"
	for name, c := range map[string]struct{ zone, path string }{
		"rules":            {"zone-1", backend + "_rules" + inShop},
		"rules-global":     {"", hashed + "_rules"},
		"rules-grouped":    {"zone-1", backend + "_rules" + inShop + "&grouped=true"},
		"policies":         {"zone-1", backend + "_policies" + inShop},
		"layout":           {"zone-1", backend + "_layout" + inShop},
		"inbound":          {"zone-1", backend + "_inbounds/kri_dp_default_zone-1_shop_backend_http/_policies" + inShop},
		"outbound-port":    {"zone-1", backend + "_outbounds/kri_msvc_default_zone-1_pay_ledger_http/_policies" + inShop},
		"outbound-service": {"zone-1", backend + "_outbounds/kri_msvc_default_zone-1_shop_backend_/_policies" + inShop},
		"touched":          {"zone-1", "/meshes/default/meshtimeouts/own/_resources/dataplanes" + inShop},
		"touched-all":      {"", "/meshes/default/meshtrafficpermissions/base/_resources/dataplanes?size=2"},
		"touched-last":     {"", "/meshes/default/meshtrafficpermissions/base/_resources/dataplanes?size=2&offset=2"},
		"touched-target":   {"zone-1", "/meshes/default/traffictargets/insiders/_resources/dataplanes" + inShop},
		"service":          {"zone-1", "/meshes/default/meshservices/ledger/_policies?namespace=pay"},
		"service-global": {"", "/meshes/default/meshservices/" + hashing.Name("default", "ledger", "zone-1", "pay") +
			"/_policies"},
		"touched-service": {"zone-1", "/meshes/default/meshservices/backend/_resources/dataplanes" + inShop},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := newSite(t, c.zone).ask(t, http.MethodGet, c.path, "")
			if code != http.StatusOK {
				t.Fatalf("%d %s", code, body)
			}
			golden(t, name, body)
		})
	}
}

func golden(t *testing.T, name string, body []byte) {
	t.Helper()
	got := bytes.TrimSpace(indented(t, body))
	file := filepath.Join("testdata", "answers", name+".json")
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
		t.Errorf("run with -update after a look at the change:\n%s", diff)
	}
}

func indented(t *testing.T, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestErrors checks that a request that cannot be answered gets an error object that names the correct form.
func TestErrors(t *testing.T) {
	s := newSite(t, "zone-1")
	for path, want := range map[string]int{
		"/meshes/other/dataplanes/backend/_rules":                                                                     404,
		backend + "_rules":                                                                                            404,
		backend + "_layout?namespace=other":                                                                           404,
		backend + "_outbounds/backend/_policies?namespace=shop":                                                       400,
		backend + "_outbounds/kri_msvc_default_zone-1_shop_nobody_/_policies?namespace=shop":                          404,
		backend + "_outbounds/kri_msvc_default_zone-1_shop_backend_other/_policies?namespace=shop":                    404,
		backend + "_inbounds/kri_dp_default_zone-1_shop_backend_other/_policies?namespace=shop":                       404,
		"/meshes/default/meshes/default/_resources/dataplanes":                                                        404,
		"/meshes/default/meshtimeouts/nobody/_resources/dataplanes":                                                   404,
		"/meshes/other/meshtimeouts/own/_resources/dataplanes":                                                        404,
		"/meshes/default/meshtimeouts/own/_resources/dataplanes?namespace=shop&size=0":                                400,
		"/meshes/default/meshtimeouts/own/_resources/dataplanes?namespace=shop&offset=-1":                             400,
		"/meshes/default/dataplanes/backend/_inbounds/kri_dp_default_zone-1_shop_other_http/_policies?namespace=shop": 400,
		"/meshes/default/meshservices/nobody/_policies":                                                               404,
		"/meshes/default/meshtimeouts/own/_policies?namespace=shop":                                                   404,
		"/meshes/other/meshservices/backend/_policies":                                                                404,
		"/_kri/backend": 400,
		"/_kri/kri_mt_default_zone-1_shop_nobody_":                404,
		"/_kri/kri_mt_default_zone-1_shop_own_?form=short":        400,
		"/_kri/kri_mt_default_zone-1_shop_own_?format=toml":       400,
		"/_report/shadow?policy=base":                             400,
		"/_report/denied?since=yesterday":                         400,
		"/_report/denied?size=0":                                  400,
		"/_suggest/permissions":                                   400,
		"/_suggest/permissions?dataplane=nobody":                  404,
		"/_suggest/permissions?dataplane=backend&since=yesterday": 400,
		"/nothings":                                    404,
		"/meshes/default/dataplanes?size=-1":           400,
		"/meshes/default/dataplanes/backend/_overview": 404,
	} {
		code, body := s.ask(t, http.MethodGet, path, "")
		var e api.Error
		if err := json.Unmarshal(body, &e); err != nil || code != want || e.Detail == "" {
			t.Errorf("%s: want %d, got %d %s", path, want, code, body)
		}
	}
}

// TestMissingNamesTheCopies checks the error for a caller that asks the global for a Dataplane by its name in its zone:
// the error names the copies.
func TestMissingNamesTheCopies(t *testing.T) {
	s := newSite(t, "")
	for path, copies := range map[string][]string{
		backend + "_rules": {"zone-1", "zone-2"}, backend + "_layout" + inShop: {"zone-1", "zone-2"},
		backend + "_layout?namespace=other":  nil,
		"/meshes/default/dataplanes/backend": {"zone-1", "zone-2"}, backend + "_overview": {"zone-1", "zone-2"},
		backend + "_rules?zone=zone-3&namespace=shop": nil,
	} {
		code, body := s.ask(t, http.MethodGet, path, "")
		named := 0
		for _, zone := range copies {
			if bytes.Contains(body, []byte(hashing.Name("default", "backend", zone, "shop")+
				", the copy of kri_dp_default_"+zone+"_shop_backend_")) {
				named++
			}
		}
		if code != http.StatusNotFound || named != len(copies) || len(copies) == 0 && bytes.Contains(body, []byte("copy")) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// TestConditions checks that a policy, when read, shows which of its parts have no effect.
func TestConditions(t *testing.T) {
	for _, zone := range []string{"zone-1", ""} {
		s := newSite(t, zone)
		for _, policy := range []struct {
			typ  resources.Type
			name string
			want []string
		}{
			{resources.TypeMeshTimeout, "own", nil},
			{resources.TypeMeshRetry, "astray",
				[]string{"ResolvedRefs False NotResolved to[0].targetRef: MeshService nobody resolves to nothing"}},
			{resources.TypeTrafficTarget, "insiders",
				[]string{"ResolvedRefs False NotResolved rules[1]: TCPRoute nothing resolves to nothing"}},
			{resources.TypeMeshTrafficPermission, "by-tags", []string{
				"Accepted False PartlyIneffective from[0].targetRef: identities carry no tags",
				"Accepted False SelectsNothing selects no Dataplane"}},
		} {
			var found *resources.Resource
			for r := range s.store.Snapshot().List(store.Query{Type: policy.typ,
				Labels: map[string]string{resources.LabelDisplayName: policy.name}}) {
				found = r
			}
			path := "/meshes/default/" + found.Descriptor().Path + "/" + found.Name + "?namespace=" + found.Namespace
			answer := httptest.NewRecorder()
			s.handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
			var got struct {
				Status struct{ Conditions []resources.Condition }
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, answer.Body)
			}
			var texts []string
			for _, c := range got.Status.Conditions {
				texts = append(texts, strings.Join([]string{c.Type, c.Status, c.Reason, c.Message}, " "))
			}
			if !slices.EqualFunc(texts, policy.want, strings.HasPrefix) {
				t.Errorf("zone %q, %s: want %q, got %q", zone, policy.name, policy.want, texts)
			}
		}
	}
}

// TestFresh checks that an answer reflects a change at once, and that a zone does not show a policy that does not reach
// it.
func TestFresh(t *testing.T) {
	s := newSite(t, "zone-1")
	const path = "/meshes/default/dataplanes/backend/_inbounds/kri_dp_default_zone-1_shop_backend_admin/_policies?namespace=shop"
	_, before := s.ask(t, http.MethodGet, path, "")
	base := s.store.Snapshot().Get(resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
		Name: hashing.Name("default", "base")})
	if base == nil {
		t.Fatal("no policy base")
	}
	if _, err := s.store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Delete: base.Key}}}); err != nil {
		t.Fatal(err)
	}
	_, after := s.ask(t, http.MethodGet, path, "")
	if kri := []byte(resources.KRIOf(base).String()); !bytes.Contains(before, kri) || bytes.Contains(after, kri) {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
	server := api.New(api.Config{Store: s.store})
	inspect.Register(server,
		inspect.Config{Store: s.store, Crosses: func(*resources.Resource, string) bool { return false }})
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer,
		httptest.NewRequest(http.MethodGet, "/meshes/default/dataplanes/backend/_rules?namespace=shop", nil))
	if strings.Contains(answer.Body.String(), "kri_mt_default___defaults_") ||
		!strings.Contains(answer.Body.String(), "kri_mt_default_zone-1_shop_own_") {
		t.Errorf("%s", answer.Body)
	}
}
