package access

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPrefixesThatNamesCanComplete: together with no name or group that a provider gives does a prefix make one of the
// server's own.
func TestPrefixesThatNamesCanComplete(t *testing.T) {
	for prefix, taken := range map[string]bool{
		"": true, "oidc:": true, "mesh:": true, "mesh-systems:": true,
		"mesh-system:": false, "mesh-system:x": false, "mesh-system": false, "mesh-": false, "m": false,
	} {
		_, err := newOIDC(t.Context(), OIDCSettings{Issuer: "https://provider.example", ClientID: "causeway", Prefix: prefix}, nil)
		if (err == nil) != taken {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}

// TestOtherTokensOfAProvider checks that no other token that a provider signs for the client passes for an ID token.
func TestOtherTokensOfAProvider(t *testing.T) {
	v := &oidcVerifier{settings: OIDCSettings{ClientID: "causeway"}}
	now := time.Unix(1_800_000_000, 0)
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, tt := range []struct{ typ, claims, refused string }{
		{"JWT", ``, ""},
		{"", ``, ""},
		{"JWT", `, "typ": "ID"`, ""},
		{"JWT", `, "typ": "Bearer"`, "kind"},
		{"JWT", `, "typ": "Refresh"`, "kind"},
		{"at+jwt", ``, "type"},
		{"logout+jwt", ``, "type"},
		{"JWT", `, "events": {}`, "event"},
		{"JWT", `, "typ": 7`, "not a JWT"},
	} {
		token := strings.Join([]string{part(fmt.Sprintf(`{"alg": "RS256", "typ": %q}`, tt.typ)),
			part(fmt.Sprintf(`{"aud": "causeway", "exp": %d%s}`, now.Unix()+60, tt.claims)), "x"}, ".")
		err := v.worthVerifying(token, now)
		if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%q with %s: %v", tt.typ, tt.claims, err)
		}
	}
}
