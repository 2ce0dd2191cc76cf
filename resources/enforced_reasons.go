package resources

import "strings"

// unenforcedReasons says why fields that are checked and stored do not configure proxies, by the path of the field in
// its conf, without indexes.
var unenforcedReasons = map[Type]map[string]string{
	TypeMeshAccessLog: {
		"backends.tcp": "Envoy has no logger that writes lines to a connection: use OpenTelemetry or a file",
	},
	TypeMeshMetric: {
		"backends.opentelemetry.refreshinterval": "Envoy takes the interval from its bootstrap only: give --push-metrics-every to causeway-zone bootstrap",
		"backends.prometheus.clientid":           "it tells scrape targets of one discovery service apart, which this server does not have",
	},
	TypeMeshTrace: {
		"backends.datadog.splitservice": "a span of Envoy has one service for all directions and destinations",
	},
	TypeMeshLoadBalancingStrategy: {
		"loadbalancer.leastrequest.activerequestbias": "it is about endpoints of different weights, and those of a service are all alike",
	},
	TypeMeshCircuitBreaker: {
		"outlierdetection": "an inbound has one endpoint, which is its application, and no other to send to",
	},
	TypeMeshRetry: {
		"http.hostselection.tags": "endpoints carry no tags in the proxies of their callers",
		"grpc.hostselection.tags": "endpoints carry no tags in the proxies of their callers",
	},
}

// reasonOf returns why a field has no effect, with a colon in front; empty if no reason is known.
func reasonOf(t Type, path string) string {
	if reason := unenforcedReasons[t][strings.ToLower(path)]; reason != "" {
		return ": " + reason
	}
	return ""
}
