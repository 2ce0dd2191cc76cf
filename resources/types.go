package resources

// Type names a kind of resource, in the spelling of users and of the wire format.
type Type string

// Live reports whether servers create resources of the type themselves and keep them in memory, beside the store.
func (t Type) Live() bool { return t == TypeZoneInsight || t == TypeDataplaneInsight }

// The types that Causeway knows. The registry describes each.
const (
	TypeMesh                 Type = "Mesh"
	TypeZone                 Type = "Zone"
	TypeZoneInsight          Type = "ZoneInsight"
	TypeDataplane            Type = "Dataplane"
	TypeDataplaneInsight     Type = "DataplaneInsight"
	TypeZoneIngress          Type = "ZoneIngress"
	TypeMeshService          Type = "MeshService"
	TypeMeshExternalService  Type = "MeshExternalService"
	TypeMeshMultiZoneService Type = "MeshMultiZoneService"
	TypeHostnameGenerator    Type = "HostnameGenerator"
	TypeMeshTrust            Type = "MeshTrust"
	TypeMeshIdentity         Type = "MeshIdentity"
	TypeMeshGateway          Type = "MeshGateway"
	TypeMeshReferenceGrant   Type = "MeshReferenceGrant"

	// TypeSecret and TypeZoneClaim are known only to stores; see Secret and ZoneClaim.
	TypeSecret    Type = "Secret"
	TypeZoneClaim Type = "ZoneClaim"

	// Access control of one server. Package access reads them.
	TypeAccessRole        Type = "AccessRole"
	TypeAccessRoleBinding Type = "AccessRoleBinding"

	// Types of the Service Mesh Interface (seed 003).
	TypeTrafficTarget  Type = "TrafficTarget"
	TypeHTTPRouteGroup Type = "HTTPRouteGroup"
	TypeTCPRoute       Type = "TCPRoute"

	TypeMeshHTTPRoute             Type = "MeshHTTPRoute"
	TypeMeshTCPRoute              Type = "MeshTCPRoute"
	TypeMeshTLS                   Type = "MeshTLS"
	TypeMeshLoadBalancingStrategy Type = "MeshLoadBalancingStrategy"
	TypeMeshPassthrough           Type = "MeshPassthrough"
	TypeMeshAccessLog             Type = "MeshAccessLog"
	TypeMeshTrace                 Type = "MeshTrace"
	TypeMeshFaultInjection        Type = "MeshFaultInjection"
	TypeMeshRateLimit             Type = "MeshRateLimit"
	TypeMeshTimeout               Type = "MeshTimeout"
	TypeMeshTrafficPermission     Type = "MeshTrafficPermission"
	TypeMeshHealthCheck           Type = "MeshHealthCheck"
	TypeMeshCircuitBreaker        Type = "MeshCircuitBreaker"
	TypeMeshRetry                 Type = "MeshRetry"
	TypeMeshMetric                Type = "MeshMetric"
	TypeMeshProxyPatch            Type = "MeshProxyPatch"
)
