package resources

import (
	"slices"
	"testing"
)

// knownWithoutSecrets lists types whose fields have been reviewed: none is a secret, or the type belongs to neither
// peers nor users.
var knownWithoutSecrets = []Type{
	TypeZone, TypeZoneInsight, TypeAccessRole, TypeAccessRoleBinding, TypeMeshTrust, TypeDataplane,
	TypeDataplaneInsight, TypeZoneIngress, TypeHostnameGenerator,
	TypeMeshService, TypeMeshMultiZoneService, TypeHTTPRouteGroup, TypeTCPRoute, TypeTrafficTarget,
	TypeMeshReferenceGrant, TypeMeshTimeout, TypeMeshTrafficPermission,
}

// TestEveryTypeSaysWhereItsSecretsAre checks that each type has a rule, or is in the list above after a review.
func TestEveryTypeSaysWhereItsSecretsAre(t *testing.T) {
	for _, d := range Descriptors() {
		if without := slices.Contains(knownWithoutSecrets, d.Type); without == (d.Sensitive != nil) {
			t.Errorf("%s: has a rule for secrets: %v, is known to have none: %v", d.Type, d.Sensitive != nil, without)
		}
	}
}

// TestHeadersOfCredentials checks by their names which headers carry a credential.
func TestHeadersOfCredentials(t *testing.T) {
	for name, want := range map[string]bool{
		"Authorization": true, "Set-Cookie": true, "X-Api-Key": true, "x_api_key": true, "X-Auth": true, "X-Auth-Email": true,
		"Ocp-Apim-Subscription-Key": true, "X-Access-Key": true, "X-JWT-Assertion": true, "X-Session-Id": true,
		"X-Author": false, "X-Team": false, "X-Request-Id": false, "Idempotency-Key": false, "Sec-WebSocket-Key": false, "Accept": false,
	} {
		if got := IsSecretHeader(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
