package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets" //nolint:depguard // what servers keep keys in
	"github.com/causeway-mesh/causeway/tokens"
)

// TestReplicasWithDifferentClocks: a replica that refuses another's token for the time alone says so, and what its own
// clock says. Of any other token it says neither.
func TestReplicasWithDifferentClocks(t *testing.T) {
	t.Parallel()
	log, memory := slog.New(slog.DiscardHandler), store.NewMemory()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now().Truncate(time.Second)
	replica := func(ahead time.Duration) (*httptest.Server, *tokens.Issuer) {
		now := func() time.Time { return start.Add(ahead) }
		issuer, err := tokens.Open(t.Context(), tokens.Config{Keeper: secrets.NewKeeper(memory, box), Log: log, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		guard, err := access.Open(t.Context(), access.Settings{}, access.Parts{DataDir: t.TempDir(), Store: memory, Issuer: issuer, Log: log, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(api.New(api.Config{Store: memory, Guard: guard, Now: now}))
		t.Cleanup(func() {
			s.Close()
			if err := guard.Audit().Close(); err != nil {
				t.Error(err)
			}
		})
		return s, issuer
	}
	behind, slow := replica(0)
	ahead, fast := replica(10 * time.Minute)
	issue := func(by *tokens.Issuer, claims tokens.Claims, lifetime time.Duration) string {
		token, _, err := by.Issue(t.Context(), claims, lifetime)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	user := tokens.Claims{Audience: tokens.AudienceUser, Subject: "alice"}
	proxy := tokens.Claims{Audience: tokens.AudienceDataplane, Mesh: "default", Dataplane: "backend"}
	early, brief := issue(fast, user, time.Hour), issue(slow, user, 5*time.Minute)
	revoked, claims, err := fast.Issue(t.Context(), user, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := fast.Revoke(t.Context(), claims.ID, claims.Expires); err != nil {
		t.Fatal(err)
	}
	const unsaid = "the token is not valid here"
	for _, c := range []struct {
		name, token string
		at          *httptest.Server
		status      int
		says        string
	}{
		{"of a replica that is ahead", early, behind, http.StatusUnauthorized, "not valid yet, by this server's clock, which says " + start.UTC().Format(time.RFC3339)},
		{"where it is from", early, ahead, http.StatusOK, "alice"},
		{"that ends soon, on a replica that is ahead", brief, ahead, http.StatusUnauthorized, "has expired, by this server's clock, which says " + start.Add(10*time.Minute).UTC().Format(time.RFC3339)},
		{"that ends soon, where it is from", brief, behind, http.StatusOK, "alice"},
		{"whose signature is another's", early[:strings.LastIndexByte(early, '.')] + brief[strings.LastIndexByte(brief, '.'):], behind, http.StatusUnauthorized, unsaid},
		{"of a proxy, too early", issue(fast, proxy, time.Hour), behind, http.StatusUnauthorized, unsaid},
		{"that was revoked", revoked, ahead, http.StatusUnauthorized, unsaid},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, answer := ask(t, c.at, http.MethodGet, "/who-am-i", "", "Authorization", "Bearer "+c.token)
			if status != c.status || !strings.Contains(answer, c.says) || c.says == unsaid && strings.Contains(answer, "clock") {
				t.Errorf("%d %s, want %d that says %q", status, answer, c.status, c.says)
			}
		})
	}
}
