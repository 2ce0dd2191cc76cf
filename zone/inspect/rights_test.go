package inspect_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/callers"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// guarded is the global of newSite behind a guard, with a token for each of its users. shop and pay have every verb and
// type in the namespace of that name; no specific user has the namespace "".
type guarded struct {
	handler http.Handler
	store   store.Store
	tokens  map[string]string
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{store: newSite(t, "").store, tokens: map[string]string{}}
	for user, namespace := range map[string]string{"shop": "shop", "pay": "pay", "none": ""} {
		text := fmt.Sprintf(
			"{type: AccessRole, name: %s, spec: {rules: [{verbs: ['*'], types: ['*'], namespaces: [%q]}]}}\n---\n"+
				"{type: AccessRoleBinding, name: %s, spec: {subjects: [{type: User, name: %s}], roles: [%s]}}", user,
			namespace, user, user, user)
		docs, err := resources.DecodeDocuments([]byte(text), resources.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range docs {
			if _, err := g.store.Apply(t.Context(),
				store.Batch{Ops: []store.Op{{Put: resources.Home{}.Labelled(doc)}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	log := slog.New(slog.DiscardHandler)
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := tokens.Open(t.Context(), tokens.Config{Keeper: secrets.NewKeeper(g.store, box), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"shop", "pay", "none"} {
		if g.tokens[user], _, err = issuer.Issue(t.Context(),
			tokens.Claims{Audience: tokens.AudienceUser, Subject: user}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	limits := access.Limits{RequestsPerSecond: 10_000, RequestsBurst: 10_000}
	server := api.New(api.Config{Store: g.store,
		Guard: access.NewGuard(access.Config{Store: g.store, Issuer: issuer, Log: log, Limits: limits})})
	inspect.Register(server, inspect.Config{Store: g.store})
	inspect.RegisterPermissions(server, g.store, explain.Options{})
	callers.Register(server, callers.Config{Store: g.store, Status: g.store, Journal: accesslog.NewJournal(time.Now(), 0),
		Collecting: true})
	g.handler = server
	return g
}

func (g *guarded) ask(t *testing.T, user, method, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+g.tokens[user])
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	g.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestCopiesAreJudgedByTheirHome checks the rights to copies: on a global, a resource from a namespace of a zone has no
// namespace and a hashed name. Only a user with rights in its original namespace can read, change or delete it, by any
// path. No other user learns that it exists.
func TestCopiesAreJudgedByTheirHome(t *testing.T) {
	g := newGuarded(t)
	below := map[resources.Type][]string{
		resources.TypeDataplane:             {"", "/_rules", "/_policies", "/_layout", "/_overview"},
		resources.TypeMeshService:           {"", "/_policies", "/_resources/dataplanes"},
		resources.TypeMeshTimeout:           {"", "/_resources/dataplanes"},
		resources.TypeMeshTrafficPermission: {"", "/_resources/dataplanes"},
	}
	copies := 0
	for kind, paths := range below {
		d, _ := resources.Lookup(kind)
		for r := range g.store.Snapshot().List(store.Query{Type: kind, Mesh: "default"}) {
			home := r.HomeNamespace()
			if r.Namespace != "" || home == "" {
				continue
			}
			copies++
			item := "/meshes/default/" + d.Path + "/" + r.Name
			for _, query := range []string{"", "?namespace=", "?namespace=shop", "?namespace=pay"} {
				for _, path := range paths {
					for _, user := range []string{"shop", "pay", "none"} {
						status, answer := g.ask(t, user, http.MethodGet, item+path+query, "")
						mine := user == home && (query == "" || query == "?namespace=")
						if mine != (status == http.StatusOK) {
							t.Errorf("%s of %s, GET %s as %s: %d\n%s", kind, home, item+path+query, user, status, answer)
						}
						checkNothingOfOthers(t, g, user, item+path+query, answer)
					}
				}
			}
			for _, user := range []string{"shop", "pay", "none"} {
				if status, answer := g.ask(t, user, http.MethodGet, "/_kri/"+resources.KRIOf(r).String(),
					""); (user == home) != (status == http.StatusOK) {
					t.Errorf("%s by KRI as %s: %d\n%s", r.Key, user, status, answer)
				}
				here, thereNot := g.told(t, user, item), g.told(t, user, item+"-x")
				if user != home && strings.ReplaceAll(here, r.Name, "") != strings.ReplaceAll(thereNot, r.Name+"-x", "") {
					t.Errorf("%s tells %s that it is there:\n%s\nand what is not:\n%s", r.Key, user, here, thereNot)
				}
				if status, answer := g.ask(t, user, http.MethodDelete, item, ""); user != home &&
					status != http.StatusForbidden && status != http.StatusNotFound {
					t.Errorf("deletion of %s as %s: %d\n%s", r.Key, user, status, answer)
				}
			}
		}
	}
	if copies < 6 {
		t.Fatalf("there are %d copies only", copies)
	}
}

func (g *guarded) told(t *testing.T, user, path string) string {
	t.Helper()
	status, answer := g.ask(t, user, http.MethodGet, path, "")
	return fmt.Sprint(status, answer)
}

// checkNothingOfOthers looks for the hashed names and KRIs of resources that user may not read.
func checkNothingOfOthers(t *testing.T, g *guarded, user, asked, answer string) {
	t.Helper()
	if user == "none" {
		user = ""
	}
	for _, d := range resources.Descriptors() {
		if d.Scope != resources.ScopeMesh {
			continue
		}
		for r := range g.store.Snapshot().List(store.Query{Type: d.Type}) {
			if r.HomeNamespace() == user || strings.Contains(asked, r.Name) || r.Name == r.DisplayName() {
				continue
			}
			if kri := resources.KRIOf(r).String(); strings.Contains(answer, r.Name) || kri != "" &&
				strings.Contains(answer, kri) {
				t.Errorf("the answer to %s as %s names %s:\n%s", asked, user, r.Key, answer)
			}
		}
	}
}

// TestListsSayWhatTheyLeaveOut checks that lists count what they leave out, whatever the request selects.
func TestListsSayWhatTheyLeaveOut(t *testing.T) {
	g := newGuarded(t)
	const all = 3 // Dataplanes on the global, two of them in shop
	for _, query := range []string{"", "?size=1", "?name=ledger",
		"?" + url.Values{"filter[labels.app]": {"ledger"}}.Encode(), "?namespace=pay"} {
		for _, path := range []string{"/meshes/default/dataplanes", "/dataplanes", "/meshes/default/dataplanes/_overview"} {
			status, answer := g.ask(t, "shop", http.MethodGet, path+query, "")
			var list struct{ Total, LeftOut int }
			if err := json.Unmarshal([]byte(answer), &list); status != http.StatusOK || err != nil {
				t.Fatalf("%s: %d %v\n%s", path+query, status, err, answer)
			}
			if list.LeftOut != 1 || query == "" && list.Total != all-1 {
				t.Errorf("%s: total %d, left out %d", path+query, list.Total, list.LeftOut)
			}
			checkNothingOfOthers(t, g, "shop", path+query, answer)
		}
	}
}

// TestExplainLeavesOut checks that a question about several Dataplanes is answered for those that the caller may read,
// and that a policy that the caller may not read decides without being named.
func TestExplainLeavesOut(t *testing.T) {
	g := newGuarded(t)
	const from = `"from": "spiffe://default.zone-1.mesh.local/ns/shop/sa/web"`
	for _, body := range []string{`{"to": "kri_dp_default_zone-1_pay_ledger_", ` + from + `}`,
		`{"to": "ledger", "namespace": "pay", ` + from + `}`, `{"to": "ledger", ` + from + `}`} {
		if status, answer := g.ask(t, "shop", http.MethodPost, "/meshes/default/_explain",
			body); status != http.StatusForbidden {
			t.Errorf("%s: %d\n%s", body, status, answer)
		}
	}
	status, answer := g.ask(t, "shop", http.MethodPost, "/meshes/default/_explain",
		`{"to": "kri_dp_default_zone-1_shop_backend_http", `+from+`}`)
	var a explain.Answer
	if err := json.Unmarshal([]byte(answer), &a); status != http.StatusOK || err != nil {
		t.Fatalf("%d %v\n%s", status, err, answer)
	}
	if a.LeftOut == 0 || strings.Contains(answer, "kri_mtp_default___base_") {
		t.Errorf("the policy of the mesh is shown to who has one namespace:\n%s", answer)
	}
	checkNothingOfOthers(t, g, "shop", "_explain", answer)
}

// TestAccessLeavesOut checks that the matrix of who may call whom has the services and callers that the caller may read,
// names no policy that it may not, and says nothing of what proxies reported.
func TestAccessLeavesOut(t *testing.T) {
	g := newGuarded(t)
	for user, others := range map[string]string{"shop": "ledger", "pay": "backend"} {
		status, answer := g.ask(t, user, http.MethodGet, "/meshes/default/_access", "")
		var a callers.Answer
		if err := json.Unmarshal([]byte(answer), &a); status != http.StatusOK || err != nil {
			t.Fatalf("%d %v\n%s", status, err, answer)
		}
		if a.LeftOut == 0 || a.Total == 0 || len(a.Callers) == 0 || strings.Contains(answer, others) ||
			strings.Contains(answer, "kri_mtp_default___base_") || a.Seen.Unknown == "" {
			t.Errorf("as %s:\n%s", user, answer)
		}
		checkNothingOfOthers(t, g, user, "_access", answer)
	}
	if status, answer := g.ask(t, "none", http.MethodGet, "/meshes/default/_access", ""); strings.Contains(answer, "spiffe") {
		t.Errorf("%d\n%s", status, answer)
	}
}

// TestByKRI checks that a caller that gives a KRI need not give the namespace too, and that a 404 suggests the nearest
// name among those that the caller may read.
func TestByKRI(t *testing.T) {
	g := newGuarded(t)
	const backend, ledger = "kri_dp_default_zone-1_shop_backend_", "kri_dp_default_zone-1_pay_ledger_"
	for _, tt := range []struct {
		user, path string
		status     int
		says, not  string
	}{
		{"shop", "backend/_inbounds/" + backend + "http/_policies", 200, "policies", ledger},
		{"shop", backend + "/_rules", 200, "rules", ledger},
		{"shop", backend + "/_policies", 200, "policies", ledger},
		{"shop", backend + "/_layout", 200, "inbounds", ledger},
		{"shop", backend, 200, backend, ledger},
		{"shop", backend + "?namespace=pay", 400, "leave it out", ""},
		{"shop", "kri_mt_default_zone-1_shop_x_/_rules", 400, "is not a Dataplane", ""},
		{"pay", backend + "/_rules", 403, "", "kri_dp_default_zone-2"},
		{"pay", "backend/_inbounds/" + backend + "http/_policies", 403, "", "kri_dp_default_zone-2"},
		{"shop", "backand?namespace=shop", 404, "the nearest here: " + backend, ledger},
		{"shop", "kri_dp_default_zone-1_shop_backand_", 404, "the nearest here: " + backend, ledger},
		{"pay", "backand?namespace=pay", 404, "", "backend"},
		{"pay", "ledgr?namespace=pay", 404, "the nearest here: " + ledger, "shop"},
		{"shop", "ledgr?namespace=shop", 404, "", "ledger"},
	} {
		status, answer := g.ask(t, tt.user, http.MethodGet, "/meshes/default/dataplanes/"+tt.path, "")
		if status != tt.status || !strings.Contains(answer, tt.says) || tt.not != "" && strings.Contains(answer, tt.not) {
			t.Errorf("%s as %s: %d\n%s", tt.path, tt.user, status, answer)
		}
	}
	if status, answer := g.ask(t, "shop", http.MethodGet, "/_kri/kri_dp_default_zone-1_shop_backand_",
		""); status != 404 || !strings.Contains(answer, "the nearest here: "+backend) {
		t.Errorf("%d %s", status, answer)
	}
}
