package access

import "testing"

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
