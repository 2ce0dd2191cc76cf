package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// shows maps the beginning of a field to the test that shows it. The longest beginning counts; "" is for all others.
type shows map[string]string

// shownReceived are the tests of the first tables of the page, and shownSent those of `to`.
var (
	shownReceived = map[resources.Type]shows{
		resources.TypeMeshTimeout: {"": "TestTimeoutsOfReceivedConnections", "http.requestTimeout": "TestPoliciesOnWhatIsReceived",
			"http.streamIdleTimeout": "TestPoliciesOnWhatIsReceived", "http.maxStreamDuration": "TestPoliciesOnWhatIsReceived"},
		resources.TypeMeshCircuitBreaker: {"": "TestInboundCircuitBreaker", "connectionLimits.maxConnectionPools": "TestInboundRequestLimits",
			"connectionLimits.maxRequests": "TestInboundRequestLimits", "connectionLimits.maxRetries": "TestInboundRequestLimits"},
		resources.TypeMeshFaultInjection: {"": "TestPoliciesOnWhatIsReceived"},
		resources.TypeMeshRateLimit:      {"local.http": "TestPoliciesOnWhatIsReceived", "local.tcp": "TestConnectionRate"},
		resources.TypeMeshAccessLog:      {"": "TestAccessLogsByPolicy"},
		resources.TypeMeshMetric: {"": "TestMetricsByPolicy", "sidecar.profiles": "TestMetricsByName", "applications": "TestMetricsOfApplications",
			"backends[].openTelemetry": "TestMetricsThatAreSent"},
		resources.TypeMeshTLS: {"": "TestHandshakesByPolicy", "mode": "TestClientsInTheClear"},
		resources.TypeMeshProxyPatch: {"": "TestPatchesInEnvoy", "appendModifications[].listener.match.tags": "TestPatchesOfSomeListeners",
			"appendModifications[].networkFilter.match.listener": "TestPatchesOfSomeListeners", "appendModifications[].httpFilter.match.listener": "TestPatchesOfSomeListeners",
			"appendModifications[].virtualHost.match.routeConfigurationName": "TestPatchesOfSomeListeners"},
		resources.TypeMeshPassthrough: {"": "TestPassthroughByName"},
		resources.TypeMeshTrace: {"": "TestTracesReachAnOpenTelemetryCollector", "backends[].zipkin": "TestTracesReachZipkin",
			"backends[].datadog": "TestTracesReachDatadog"},
	}
	shownSent = map[resources.Type]shows{
		resources.TypeMeshTimeout:   {"": "TestPoliciesOnWhatIsSent", "connectionTimeout": "TestClusterConfsReachEnvoy"},
		resources.TypeMeshAccessLog: {"": "TestAccessLogsByPolicy"},
		resources.TypeMeshHTTPRoute: {"": "TestMatchesAndFiltersOfRoutes", "matches[]": "TestRouteFilters", "default.backendRefs[]": "TestRouteFilters",
			"default.filters[].urlRewrite.hostToBackendHostname": "TestHostOfTheBackend"},
		resources.TypeMeshTCPRoute: {"": "TestTCPOutbound"},
		resources.TypeMeshLoadBalancingStrategy: {"": "TestLoadBalancing", "localityAwareness": "TestLocalityAwareness", "loadBalancer.roundRobin": "TestEndpointsInTurn",
			"localityAwareness.crossZone.failoverThreshold":   "TestFailoverThreshold",
			"loadBalancer.ringHash.hashPolicies[].connection": "TestPoliciesOnWhatIsSent", "loadBalancer.maglev.hashPolicies[].connection": "TestPoliciesOnWhatIsSent",
			"hashPolicies[].connection": "TestPoliciesOnWhatIsSent", "loadBalancer.ringHash.hashPolicies[].filterState": "TestHashesOfFilterState",
			"loadBalancer.maglev.hashPolicies[].filterState": "TestHashesOfFilterState", "hashPolicies[].filterState": "TestHashesOfFilterState"},
		resources.TypeMeshHealthCheck: {"": "TestHealthChecks", "initialJitter": "TestPoliciesOnWhatIsSent", "intervalJitter": "TestPoliciesOnWhatIsSent",
			"healthyPanicThreshold": "TestPoliciesOnWhatIsSent", "failTrafficOnPanic": "TestPoliciesOnWhatIsSent", "grpc.authority": "TestPoliciesOnWhatIsSent"},
		resources.TypeMeshRetry:          {"": "TestPoliciesOnWhatIsSent", "http.hostSelection": "TestRetriesAtOtherEndpoints", "grpc.hostSelection": "TestRetriesAtOtherEndpoints", "http.backOff": "TestRetry"},
		resources.TypeMeshCircuitBreaker: {"": "TestPoliciesOnWhatIsSent"},
	}
	shownElsewhere = map[resources.Type]shows{
		resources.TypeMeshGateway: {"": "TestGatewayTerminatesTLS", "selectors[]": "TestGatewayBelievesNobody", "tags": "TestGatewayHosts", "conf.listeners[].tags": "TestGatewayHosts",
			"conf.listeners[].hostname": "TestGatewayHosts", "conf.listeners[].port": "TestGatewayServesHTTP", "conf.listeners[].protocol": "TestGatewayTCP",
			"conf.listeners[].tls.certificates[].file": "TestGatewayKeys", "conf.listeners[].tls.certificates[].inline": "TestGatewayKeys"},
		resources.TypeHostnameGenerator: {"": "TestNamesOfServices", "selector": "TestNamesBySelector"},
	}
)

// of returns the test that shows a field, or nothing.
func (s shows) of(field string) string {
	beginnings := slices.SortedFunc(maps.Keys(s), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, beginning := range beginnings {
		if strings.HasPrefix(field, beginning) {
			return s[beginning]
		}
	}
	return ""
}
