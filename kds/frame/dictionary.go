package frame

// dictionary is what both sides of a frame have before it: words of the types that zones are sent, in the form that they
// have on the wire. It never changes, because a peer opens a frame only with the very same one: a better one is announced
// as another feature. What occurs most stands last, where a reference to it takes the fewest bits.
const dictionary = typeNames + otherTypes + policyTypes + targets + labels + envelope + permissions

const (
	typeNames = "\"\x13MeshExternalService\"\x14MeshMultiZoneService\"\x11HostnameGenerator\"\x09MeshTrust\"\x0cMeshIdentity" +
		"\"\x0bMeshGateway\"\x12MeshReferenceGrant\"\x0bZoneIngress\"\x0dTrafficTarget\"\x0eHTTPRouteGroup\"\x08TCPRoute" +
		"\"\x19MeshLoadBalancingStrategy\"\x0fMeshPassthrough\"\x07MeshTLS\"\x0dMeshAccessLog\"\x09MeshTrace" +
		"\"\x12MeshFaultInjection\"\x0dMeshRateLimit\"\x0fMeshHealthCheck\"\x16MeshCircuitBreaker\"\x09MeshRetry" +
		"\"\x0aMeshMetric\"\x0eMeshProxyPatch\"\x0cMeshTCPRoute\"\x0dMeshHTTPRoute\"\x0bMeshTimeout\"\x04Mesh\"\x0bMeshService" +
		"\"\x15MeshTrafficPermission"

	otherTypes = `{"caBundles":[{"pem":{"value":"-----BEGIN CERTIFICATE-----\n\n-----END CERTIFICATE-----\n"},"type":"Pem"}],"trustDomain":"` +
		`{"provider":{"bundled":{"autogenerate":{"enabled":true},"meshTrustCreation":"Enabled"},"type":"Bundled"},"selector":{"dataplane":{"matchLabels":{}}},` +
		`"spiffeID":{"path":"/ns/{{ .Namespace }}/sa/{{ .ServiceAccount }}","trustDomain":"{{ .Mesh }}.{{ .Zone }}.mesh.local"}}` +
		`{"selector":{"meshService":{"matchLabels":{"k8s.kuma.io/namespace":"kuma.io/origin":"zone"}}},"template":"{{ .DisplayName }}.{{ .Namespace }}.svc.{{ .Zone }}.mesh.local"}` +
		`{"endpoints":[{"address":"","port":443}],"match":{"port":443,"protocol":"tls","type":"HostnameGenerator"},"tls":{"enabled":true,"verification":{"mode":"Secured","serverName":"` +
		`{"identities":[{"type":"SpiffeID","value":"spiffe://{"type":"ServiceTag","value":"` +
		`{"ports":[{"appProtocol":"http","name":"http","port":80,"targetPort":8080}],"selector":{"dataplaneLabels":{"matchLabels":{"app":"` +
		`"dataplaneTags":{"kuma.io/service":"` + `"selector":{"meshService":{"matchLabels":{"kuma.io/display-name":"` +
		`"state":"Available"}{"addresses":[{"hostname":"","hostnameGeneratorRef":{"coreName":"synced-universal-mesh-service"},"origin":"HostnameGenerator"}],` +
		`"dataplaneProxies":{"connected":1,"healthy":1,"total":1},"tls":{"status":"Ready"},"vips":[{"ip":"241.0.0."}]}`

	policyTypes = `{"to":[{"default":{"consecutiveGatewayErrors":5xx"connectionLimits":{"maxConnections":1024,"maxPendingRequests":1024,"maxRequests":1024,"maxRetries":3}` +
		`"outlierDetection":{"baseEjectionTime":"30s","detectors":{"totalFailures":{"consecutive":5}},"interval":"5s","maxEjectionPercent":50,"splitExternalAndLocalErrors":false}` +
		`{"healthyThreshold":1,"http":{"disabled":false,"expectedStatuses":[200],"path":"/health"},"interval":"10s","unhealthyThreshold":3}` +
		`{"loadBalancer":{"type":"RoundRobin"},"localityAwareness":{"crossZone":{"failover":[{"to":{"type":"Any"}}]},"localZone":{"affinityTags":[{"key":"` +
		`{"local":{"http":{"onRateLimit":{"status":429},"requestRate":{"interval":"1s","num":100}}}}` +
		`{"backends":[{"file":{"path":"/dev/stdout"},"type":"File"}]}{"backends":[{"openTelemetry":{"endpoint":"otel-collector:4317"},"type":"OpenTelemetry"}],"sampling":{"overall":100}` +
		`{"applications":[{"path":"/metrics","port":9090}],"sidecar":{"profiles":{"appendProfiles":[{"name":"Basic"}]}}` +
		`{"http":[{"abort":{"httpStatus":500,"percentage":50},"delay":{"percentage":50,"value":"5s"}}]}{"mode":"Strict","tlsVersion":{"max":"TLS13","min":"TLS12"}}` +
		`{"grpc":{"numRetries":5,"perTryTimeout":"16s"},"http":{"backOff":{"baseInterval":"25ms","maxInterval":"250ms"},"numRetries":5,"perTryTimeout":"16s","retryOn":["5xx","GatewayError","Reset"]},"tcp":{"maxConnectAttempt":5}}` +
		`{"default":{"backendRefs":[{"kind":"MeshService","labels":{"kuma.io/display-name":"","port":80,"weight":1}],"filters":[{"requestHeaderModifier":{"add":[{"name":"","value":"}],"set":[{"type":"RequestHeaderModifier"}]},` +
		`"matches":[{"headers":[{"name":"","type":"Exact","value":""}],"method":"GET","path":{"type":"PathPrefix","value":"/"}}]}],"targetRef":{"kind":"MeshService","name":"` +
		`{"connectionTimeout":"5s","http":{"maxConnectionDuration":"0s","maxStreamDuration":"0s","requestHeadersTimeout":"0s","requestTimeout":"15s","streamIdleTimeout":"30m0s"},"idleTimeout":"1h0m0s"},"targetRef":{"kind":"Mesh"}}]}`

	targets = `"targetRef":{"kind":"MeshService","labels":{"kuma.io/zone":"","namespace":"","sectionName":"http"}}]` +
		`"targetRef":{"kind":"MeshSubset","tags":{"kuma.io/service":"` + `"targetRef":{"kind":"Dataplane","labels":{"app":"` +
		`"from":[{"default":{"action":"Allow"},"targetRef":{"kind":"Mesh"}}]`

	labels = "2\x22\n\x12kuma.io/managed-by\x12\x0ck8s-controller2\x19\n\x15k8s.kuma.io/namespace\x12\x00" +
		"2\x1e\n\x1bk8s.kuma.io/service-account\x12\x0fkuma.io/service\x122\x1b\n\x0bkuma.io/env\x12\x0akubernetes" +
		"2\x16\n\x0ekuma.io/origin\x12\x04zone2\x15\n\x0ckuma.io/zone\x12\x06zone-12\x20\n\x13kuma.io/policy-role\x12\x08producer" +
		"workload-ownerconsumer"

	// envelope is a discovery.Resource without a version, up to its specification.
	envelope = "\x12\x8a\x05\x12\xf2\x04\n3type.googleapis.com/kuma.mesh.v1alpha1.KumaResource\x12\xba\x04\n\xb4\x01\n\x1a" +
		"-\x12\x07default2!\n\x14kuma.io/display-name\x12\x092\x18\n\x0bkuma.io/env\x12\x09universal2\x17\n\x0ckuma.io/mesh" +
		"\x12\x07default2\x18\n\x0ekuma.io/origin\x12\x06global2\x1d\n\x13kuma.io/policy-role\x12\x06system\x12\x81\x04\x12\xfe\x03"

	permissions = `{"rules":[{"default":{"allowWithShadowDeny":[{"deny":[{"path":{"type":"Exact","value":"/"},"spiffeId":{"type":"` +
		`{"rules":[{"default":{"allow":[{"spiffeID":{"type":"Exact","value":"spiffe://default..mesh.local/ns//sa/"}},` +
		`{"spiffeID":{"type":"Prefix","value":"spiffe://default.zone.mesh.local/ns/` + `/sa/default"}}]}}],"targetRef":{"kind":"Mesh"}}` +
		"\x1a\x22.default"
)
