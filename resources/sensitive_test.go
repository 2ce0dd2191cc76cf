package resources

import (
	"slices"
	"testing"
)

// knownWithoutSecrets are types all of whose fields were looked at: none is a secret, or it belongs to no peer and no user.
var knownWithoutSecrets = []Type{
	TypeZone, TypeZoneInsight, TypeAccessRole, TypeAccessRoleBinding, TypeMeshTrust, TypeDataplane, TypeDataplaneInsight, TypeZoneIngress,
	TypeMeshService, TypeMeshMultiZoneService, TypeHTTPRouteGroup, TypeTCPRoute, TypeTrafficTarget, TypeMeshReferenceGrant, TypeMeshTimeout, TypeMeshTrafficPermission,
}

// TestEveryTypeSaysWhereItsSecretsAre: a new type has a rule, or stands in the list above with somebody's word for it.
func TestEveryTypeSaysWhereItsSecretsAre(t *testing.T) {
	for _, d := range Descriptors() {
		if without := slices.Contains(knownWithoutSecrets, d.Type); without == (d.Sensitive != nil) {
			t.Errorf("%s: has a rule for secrets: %v, is known to have none: %v", d.Type, d.Sensitive != nil, without)
		}
	}
}
