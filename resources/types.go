package resources

// Type names a kind of resource, as users and the wire spell it.
type Type string

// The types that Causeway knows; the registry says the rest about each.
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
	TypeMeshTrust            Type = "MeshTrust"
	TypeMeshIdentity         Type = "MeshIdentity"
	TypeMeshGateway          Type = "MeshGateway"
	TypeMeshReferenceGrant   Type = "MeshReferenceGrant"

	// TypeSecret and TypeZoneClaim are known to stores only; see Secret and ZoneClaim.
	TypeSecret    Type = "Secret"
	TypeZoneClaim Type = "ZoneClaim"

	// Who may do what on one server; access reads them.
	TypeAccessRole        Type = "AccessRole"
	TypeAccessRoleBinding Type = "AccessRoleBinding"

	// Of the Service Mesh Interface (seed 003).
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
