package access

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSignIn reads how to sign in out of documents of providers.
func TestSignIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change map[string]any
		scopes []string
		refuse string
	}{
		{name: "with groups", change: map[string]any{"scopes_supported": []string{"openid", "offline_access", "groups", "profile"}}, scopes: []string{"openid", "profile", "groups"}},
		{name: "without a list of scopes", scopes: []string{"openid"}},
		{name: "scopes that are none", change: map[string]any{"scopes_supported": 7}, scopes: []string{"openid"}},
		{name: "no token endpoint", change: map[string]any{"token_endpoint": ""}, refuse: "no token endpoint"},
		{name: "a token endpoint in plain text", change: map[string]any{"token_endpoint": "http://idp.example/token"}, refuse: "token_endpoint"},
		{name: "a script for an endpoint", change: map[string]any{"authorization_endpoint": "javascript:alert(1)"}, refuse: "authorization_endpoint"},
		{name: "a password in an endpoint", change: map[string]any{"authorization_endpoint": "https://a:b@idp.example/auth"}, refuse: "authorization_endpoint"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var document map[string]any
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(document) }))
			t.Cleanup(s.Close)
			document = map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys", "authorization_endpoint": s.URL + "/auth", "token_endpoint": s.URL + "/token"}
			for key, value := range tt.change {
				document[key] = value
			}
			ca := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
				t.Fatal(err)
			}
			verifier, err := newOIDC(t.Context(), OIDCSettings{Issuer: s.URL, ClientID: "page", CAFile: ca}, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			how, err := NewGuard(Config{OIDC: verifier}).SignIn(t.Context())
			if tt.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refuse) {
					t.Fatalf("%+v, %v; want a refusal of %s", how, err, tt.refuse)
				}
				return
			}
			if err != nil || how.ClientID != "page" || how.Token != s.URL+"/token" || how.Authorization != s.URL+"/auth" || !slices.Equal(how.Scopes, tt.scopes) {
				t.Errorf("%+v, %v; want scopes %v", how, err, tt.scopes)
			}
		})
	}
	if how, err := NewGuard(Config{}).SignIn(t.Context()); how != nil || err != nil {
		t.Errorf("without a provider: %+v, %v", how, err)
	}
}
