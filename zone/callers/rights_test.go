package callers_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/callers"
)

// TestReportsOfAZoneThatMayNotBeRead asks a global for what a zone's proxies reported, as a user who may read the server
// and the zone, and as one who may not read zones: of those, the second learns nothing, whether they exist or not.
func TestReportsOfAZoneThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put(t, `{type: AccessRole, name: server, spec: {rules: [{verbs: [read], types: [Server, Dataplane, MeshService, Mesh]}]}}
---
{type: AccessRole, name: zones, spec: {rules: [{verbs: [read], types: [Zone]}]}}
---
{type: AccessRoleBinding, name: anna, spec: {subjects: [{type: User, name: anna}], roles: [server, zones]}}
---
{type: AccessRoleBinding, name: ben, spec: {subjects: [{type: User, name: ben}], roles: [server]}}`)
	log := slog.New(slog.DiscardHandler)
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := tokens.Open(t.Context(), tokens.Config{Keeper: secrets.NewKeeper(s.store, box), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	server := api.New(api.Config{Store: s.store, Guard: access.NewGuard(access.Config{Store: s.store, Issuer: issuer, Log: log})})
	var asked []string
	callers.Register(server, callers.Config{Store: s.store, Status: s.store,
		Reported: func(_ context.Context, zone, _ string) (*accesslog.Record, string) {
			asked = append(asked, zone)
			return nil, "the zone " + zone + " is offline"
		}})
	ask := func(user, zone string) string {
		token, _, err := issuer.Issue(t.Context(), tokens.Claims{Audience: tokens.AudienceUser, Subject: user}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://127.0.0.1/meshes/default/_access?reported=true&zone="+zone, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", user, w.Code, w.Body)
		}
		return w.Body.String()
	}
	if said := ask("anna", "zone-1"); len(asked) != 1 || !strings.Contains(said, "zone-1 is offline") {
		t.Errorf("asked of %v: %s", asked, said)
	}
	if said := ask("ben", "zone-1"); len(asked) != 1 || !strings.Contains(said, "there is no zone zone-1, or you may not read it") {
		t.Errorf("asked of %v: %s", asked, said)
	}
}
