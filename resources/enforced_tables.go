package resources

import (
	"strings"
)

// confFields lists the fields of a conf that have an effect in this version, for types whose confs are stored with all
// fields. A dot separates the field of an object from the object, [] precedes a field of a list's items, and * stands
// for everything below it. A test in zone/xds compares it with the fields that zone/xds reads and with the
// configuration that proxies receive.
var confFields = map[Type]confField{
	TypeMeshRetry: fieldsOf("tcp.maxConnectAttempt", retryFields("http"), retryFields("grpc")),
	TypeMeshCircuitBreaker: fieldsOf(
		"connectionLimits.maxConnectionPools", "connectionLimits.maxConnections", "connectionLimits.maxPendingRequests",
		"connectionLimits.maxRetries", "connectionLimits.maxRequests",
		"outlierDetection.disabled", "outlierDetection.interval", "outlierDetection.baseEjectionTime",
		"outlierDetection.maxEjectionTime", "outlierDetection.maxEjectionPercent",
		"outlierDetection.splitExternalAndLocalErrors", "outlierDetection.healthyPanicThreshold",
		"outlierDetection.detectors.totalFailures.consecutive", "outlierDetection.detectors.gatewayFailures.consecutive",
		"outlierDetection.detectors.localOriginFailures.consecutive",
		"outlierDetection.detectors.successRate.minimumHosts", "outlierDetection.detectors.successRate.requestVolume",
		"outlierDetection.detectors.successRate.standardDeviationFactor",
		"outlierDetection.detectors.failurePercentage.minimumHosts",
		"outlierDetection.detectors.failurePercentage.requestVolume",
		"outlierDetection.detectors.failurePercentage.threshold",
	),
	TypeMeshLoadBalancingStrategy: fieldsOf(
		"loadBalancer.type", "loadBalancer.roundRobin", "loadBalancer.random", "loadBalancer.leastRequest.choiceCount",
		"loadBalancer.ringHash.hashFunction", "loadBalancer.ringHash.minRingSize", "loadBalancer.ringHash.maxRingSize",
		hashFields("loadBalancer.ringHash.hashPolicies[]"), "loadBalancer.maglev.tableSize",
		hashFields("loadBalancer.maglev.hashPolicies[]"),
		hashFields("hashPolicies[]"),
		"localityAwareness.disabled", "localityAwareness.localZone.affinityTags[].key",
		"localityAwareness.localZone.affinityTags[].weight",
		"localityAwareness.crossZone.failover[].from.zones", "localityAwareness.crossZone.failover[].to.type",
		"localityAwareness.crossZone.failover[].to.zones", "localityAwareness.crossZone.failoverThreshold.percentage",
	),
	TypeMeshHealthCheck: fieldsOf(
		"interval", "timeout", "unhealthyThreshold", "healthyThreshold", "initialJitter", "intervalJitter",
		"intervalJitterPercent",
		"healthyPanicThreshold", "failTrafficOnPanic", "noTrafficInterval", "reuseConnection",
		"tcp.disabled", "tcp.send", "tcp.receive", "http.disabled", "http.path", "http.expectedStatuses",
		"http.requestHeadersToAdd.set[].name", "http.requestHeadersToAdd.set[].value",
		"http.requestHeadersToAdd.add[].name", "http.requestHeadersToAdd.add[].value",
		"grpc.disabled", "grpc.serviceName", "grpc.authority", "eventLogPath", "alwaysLogHealthCheckFailures",
	),
	TypeMeshAccessLog: logFields,
	TypeMeshHTTPRoute: fieldsOf(
		"matches.*", "default.backendRefs.*", "default.filters[].type",
		"default.filters[].requestHeaderModifier.set[].name", "default.filters[].requestHeaderModifier.set[].value",
		"default.filters[].requestHeaderModifier.add[].name", "default.filters[].requestHeaderModifier.add[].value",
		"default.filters[].requestHeaderModifier.remove",
		"default.filters[].responseHeaderModifier.set[].name", "default.filters[].responseHeaderModifier.set[].value",
		"default.filters[].responseHeaderModifier.add[].name", "default.filters[].responseHeaderModifier.add[].value",
		"default.filters[].responseHeaderModifier.remove",
		"default.filters[].requestRedirect.scheme", "default.filters[].requestRedirect.hostname",
		"default.filters[].requestRedirect.path.*",
		"default.filters[].requestRedirect.port", "default.filters[].requestRedirect.statusCode",
		"default.filters[].urlRewrite.hostname", "default.filters[].urlRewrite.hostToBackendHostname",
		"default.filters[].urlRewrite.path.*",
		"default.filters[].requestMirror.percentage", "default.filters[].requestMirror.backendRef.*",
	),
}

// hashFields returns the fields of a HashPolicy at a place, one per line.
func hashFields(at string) string {
	var out []string
	for _, name := range []string{
		"type", "terminal", "header.name", "cookie.name", "cookie.ttl", "cookie.path", "connection.sourceIP",
		"queryParameter.name", "filterState.key",
	} {
		out = append(out, at+"."+name)
	}
	return strings.Join(out, "\n")
}

// logFields are the fields of a MeshAccessLog in either direction.
var logFields = fieldsOf(
	"backends[].type", "backends[].file.path", "backends[].file.format.type", "backends[].file.format.plain",
	"backends[].file.format.json[].key", "backends[].file.format.json[].value", "backends[].file.format.omitEmptyValues",
	"backends[].openTelemetry.endpoint", "backends[].openTelemetry.attributes[].key",
	"backends[].openTelemetry.attributes[].value",
	"backends[].openTelemetry.body.*",
)

// retryFields returns the retry fields of a protocol, one per line.
func retryFields(protocol string) string {
	var out []string
	for _, name := range []string{
		"numRetries", "perTryTimeout", "backOff.baseInterval", "backOff.maxInterval", "rateLimitedBackOff.maxInterval",
		"rateLimitedBackOff.resetHeaders[].name", "rateLimitedBackOff.resetHeaders[].format", "retryOn",
		"retriableRequestHeaders[].name", "retriableRequestHeaders[].type", "retriableRequestHeaders[].value",
		"retriableResponseHeaders[].name", "retriableResponseHeaders[].type", "retriableResponseHeaders[].value",
		"hostSelection[].predicate", "hostSelection[].updateFrequency", "hostSelectionMaxAttempts",
	} {
		out = append(out, protocol+"."+name)
	}
	return strings.Join(out, "\n")
}

// patchFields returns the fields of a modification of a MeshProxyPatch, one per line. All kinds match by origin and name.
func patchFields(kind string, matches ...string) string {
	at := "appendModifications[]." + kind + "."
	out := []string{at + "operation", at + "value", at + "jsonPatches.*", at + "match.origin", at + "match.name"}
	for _, match := range matches {
		out = append(out, at+"match."+match)
	}
	return strings.Join(out, "\n")
}

// receivedFields is confFields for the confs of `from`, `rules` and `default`.
var receivedFields = map[Type]confField{
	TypeMeshTimeout: fieldsOf(
		"connectionTimeout", "idleTimeout", "http.requestTimeout", "http.streamIdleTimeout", "http.maxStreamDuration",
		"http.maxConnectionDuration", "http.requestHeadersTimeout",
	),
	TypeMeshRateLimit: fieldsOf(
		"local.http.disabled", "local.http.requestRate.num", "local.http.requestRate.interval",
		"local.http.onRateLimit.status",
		"local.http.onRateLimit.headers.set[].name", "local.http.onRateLimit.headers.set[].value",
		"local.http.onRateLimit.headers.add[].name", "local.http.onRateLimit.headers.add[].value",
		"local.tcp.disabled", "local.tcp.connectionRate.num", "local.tcp.connectionRate.interval",
	),
	TypeMeshCircuitBreaker: fieldsOf(
		"connectionLimits.maxConnectionPools", "connectionLimits.maxConnections", "connectionLimits.maxPendingRequests",
		"connectionLimits.maxRetries", "connectionLimits.maxRequests",
	),
	TypeMeshAccessLog: logFields,
	TypeMeshMetric: fieldsOf(
		"backends[].type", "backends[].prometheus.port", "backends[].prometheus.path", "backends[].prometheus.tls.mode",
		"backends[].openTelemetry.endpoint",
		"sidecar.regex", "sidecar.includeUnused", "sidecar.profiles.appendProfiles[].name",
		"sidecar.profiles.include[].type", "sidecar.profiles.include[].match",
		"sidecar.profiles.exclude[].type", "sidecar.profiles.exclude[].match",
		"applications[].name", "applications[].path", "applications[].address", "applications[].port",
	),
	TypeMeshProxyPatch: fieldsOf(patchFields("cluster"), patchFields("listener", "tags.*"),
		patchFields("networkFilter", "listenerName", "listenerTags.*"),
		patchFields("httpFilter", "listenerName", "listenerTags.*"), patchFields("virtualHost", "routeConfigurationName")),
	TypeMeshPassthrough: fieldsOf(
		"passthroughMode", "appendMatch[].type", "appendMatch[].value", "appendMatch[].port", "appendMatch[].protocol",
	),
	TypeMeshTLS: fieldsOf("tlsVersion.min", "tlsVersion.max", "tlsCiphers", "mode"),
	TypeMeshTrace: fieldsOf(
		"backends[].type", "backends[].zipkin.url", "backends[].zipkin.traceId128bit", "backends[].zipkin.apiVersion",
		"backends[].zipkin.sharedSpanContext", "backends[].openTelemetry.endpoint", "backends[].datadog.url", "sampling.overall",
		"sampling.client", "sampling.random",
		"tags[].name", "tags[].literal", "tags[].header.name", "tags[].header.default",
	),
	TypeMeshFaultInjection: fieldsOf(
		"http[].abort.httpStatus", "http[].abort.percentage", "http[].delay.value", "http[].delay.percentage",
		"http[].responseBandwidth.limit", "http[].responseBandwidth.percentage",
	),
}
