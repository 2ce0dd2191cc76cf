package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// configured is shown for fields whose effect no test here waits for: one test removes each from a conf, and the
// proxies' configuration differs; another gives all of it to a real Envoy.
const configured = "TestEnvoyTakesAllThatIsGenerated"

// shows maps the beginning of a field to the test that shows it. The longest beginning counts; "" is for all others.
type shows map[string]string

// shownReceived are the tests of the first tables of the page, and shownSent those of `to`.
var (
	shownReceived = map[resources.Type]shows{
		resources.TypeMeshTimeout: {"": "TestTimeoutsOfReceivedConnections", "http.requestTimeout": "TestPoliciesOnWhatIsReceived",
			"http.streamIdleTimeout": "TestPoliciesOnWhatIsReceived", "http.maxStreamDuration": "TestPoliciesOnWhatIsReceived"},
		resources.TypeMeshCircuitBreaker: {"": "TestInboundCircuitBreaker", "connectionLimits.maxConnectionPools": configured,
			"connectionLimits.maxRequests": configured, "connectionLimits.maxRetries": configured},
		resources.TypeMeshFaultInjection: {"": "TestPoliciesOnWhatIsReceived"},
		resources.TypeMeshRateLimit:      {"local.http": "TestPoliciesOnWhatIsReceived", "local.tcp": "TestConnectionRate"},
		resources.TypeMeshAccessLog:      {"": "TestAccessLogsByPolicy"},
		resources.TypeMeshMetric: {"": "TestMetricsByPolicy", "sidecar.profiles": "TestMetricsByName", "applications": "TestMetricsOfApplications",
			"backends[].openTelemetry": "TestMetricsThatAreSent"},
		resources.TypeMeshTLS: {"": "TestHandshakesByPolicy", "mode": "TestClientsInTheClear"},
		resources.TypeMeshProxyPatch: {"": "TestPatchesInEnvoy", "appendModifications[].listener.match.tags": configured,
			"appendModifications[].networkFilter.match.listener": configured, "appendModifications[].httpFilter.match.listener": configured,
			"appendModifications[].virtualHost.match.routeConfigurationName": configured},
		resources.TypeMeshPassthrough: {"": "TestPassthroughByName"},
		resources.TypeMeshTrace: {"": "TestTracesReachAnOpenTelemetryCollector", "backends[].zipkin": "TestTracesReachZipkin",
			"backends[].datadog": "TestTracesReachDatadog"},
	}
	shownSent = map[resources.Type]shows{
		resources.TypeMeshTimeout:   {"": "TestPoliciesOnWhatIsSent", "connectionTimeout": "TestClusterConfsReachEnvoy"},
		resources.TypeMeshAccessLog: {"": "TestAccessLogsByPolicy"},
		resources.TypeMeshHTTPRoute: {"": "TestMatchesAndFiltersOfRoutes", "matches[]": "TestRouteFilters", "default.backendRefs[]": "TestRouteFilters",
			"default.filters[].urlRewrite.hostToBackendHostname": configured},
		resources.TypeMeshTCPRoute: {"": "TestTCPOutbound"},
		resources.TypeMeshLoadBalancingStrategy: {"": "TestLoadBalancing", "localityAwareness": "TestLocalityAwareness", "loadBalancer.roundRobin": configured,
			"localityAwareness.localZone.affinityTags[].weight": configured, "localityAwareness.crossZone.failoverThreshold": configured,
			"loadBalancer.ringHash.hashPolicies[].connection": "TestPoliciesOnWhatIsSent", "loadBalancer.maglev.hashPolicies[].connection": "TestPoliciesOnWhatIsSent",
			"hashPolicies[].connection": "TestPoliciesOnWhatIsSent", "loadBalancer.ringHash.hashPolicies[].filterState": configured,
			"loadBalancer.maglev.hashPolicies[].filterState": configured, "hashPolicies[].filterState": configured},
		resources.TypeMeshHealthCheck: {"": "TestHealthChecks", "initialJitter": "TestPoliciesOnWhatIsSent", "intervalJitter": "TestPoliciesOnWhatIsSent",
			"healthyPanicThreshold": "TestPoliciesOnWhatIsSent", "failTrafficOnPanic": "TestPoliciesOnWhatIsSent", "grpc.authority": "TestPoliciesOnWhatIsSent",
			"http.requestHeadersToAdd.add": configured},
		resources.TypeMeshRetry:          {"": "TestPoliciesOnWhatIsSent", "http.hostSelection": "TestRetryElsewhere", "grpc.hostSelection": configured, "http.backOff": "TestRetry"},
		resources.TypeMeshCircuitBreaker: {"": "TestPoliciesOnWhatIsSent"},
	}
	shownElsewhere = map[resources.Type]shows{
		resources.TypeMeshGateway: {"": "TestGatewayTerminatesTLS", "selectors[]": "TestGatewayBelievesNobody", "tags": "TestGatewayHosts", "conf.listeners[].tags": "TestGatewayHosts",
			"conf.listeners[].hostname": "TestGatewayHosts", "conf.listeners[].port": "TestGatewayServesHTTP", "conf.listeners[].protocol": "TestGatewayTCP",
			"conf.listeners[].tls.certificates[].file": "TestGatewayKeys", "conf.listeners[].tls.certificates[].inline": "TestGatewayKeys"},
		resources.TypeHostnameGenerator: {"": "TestNamesOfServices"},
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
