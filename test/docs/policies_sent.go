package main

import "github.com/causeway-mesh/causeway/resources"

// sentTypes are the types of policies on what a workload sends whose fields the page lists. A test compares them with
// resources.ConfFields.
var sentTypes = []policyType{
	{resources.TypeMeshLoadBalancingStrategy,
		"In `to`. Without one, endpoints of the own zone are asked in turn, and those of other zones when none of these is left. A change replaces the cluster or the " +
			"route. Hashes are of requests: on TCP, RingHash and Maglev go by chance, which is among the proxy's problems. `hashPolicies` beside `loadBalancer` take " +
			"the place of those in it. `localityAwareness` is about the zones behind a MeshMultiZoneService, where all proxies of another zone are one endpoint for each of its " +
			"ingresses; `affinityTags` hold for a MeshService, too. With `localZone` and without `crossZone`, no other zone is asked; `disabled` counts where both are absent.",
		append(append([]policyField{
			{"loadBalancer.type", "`lb_policy` of the cluster", "who is asked next"},
			{"loadBalancer.roundRobin", "nothing: it has no fields", "all endpoints in turn"},
			{"loadBalancer.random", "nothing: it has no fields", "any endpoint"},
			{"loadBalancer.leastRequest.choiceCount", "`choice_count`", "of so many, the one with the fewest requests"},
			{"loadBalancer.ringHash.hashFunction", "`hash_function`", "one endpoint for one value"},
			{"loadBalancer.ringHash.minRingSize", "`minimum_ring_size`, 1024 unless set", "one endpoint for one value"},
			{"loadBalancer.ringHash.maxRingSize", "`maximum_ring_size`, at most 8388608", "one endpoint for one value"},
			{"loadBalancer.maglev.tableSize", "`table_size`, a prime of at most 5000011", "one endpoint for one value"},
		}, append(hashRows("loadBalancer.ringHash.hashPolicies[]."), localityRows...)...),
			append(hashRows("loadBalancer.maglev.hashPolicies[]."), hashRows("hashPolicies[].")...)...),
		"loadBalancer.leastRequest.activeRequestBias"},
	{resources.TypeMeshHealthCheck,
		"In `to`. Without one, no proxy asks endpoints by itself. Each calling proxy asks each endpoint: by HTTP or gRPC where the service's port speaks it and the conf " +
			"has a part for it, otherwise, with `tcp` or no part at all, by a connection. A check is a call of the caller's own identity: the service's permissions must " +
			"allow it. A change replaces the cluster. Where the conf has parts, and none that fits the port, the endpoints are not asked, which is among the proxy's problems.",
		[]policyField{
			{"interval", "`interval`, 1m unless set, at least 100ms", "the application is asked so often"},
			{"timeout", "`timeout`, 15s unless set, at most 30s", "an answer that comes later is a failure"},
			{"unhealthyThreshold", "`unhealthy_threshold`, 5 unless set",
				"an endpoint that fails so often gets no more requests"},
			{"healthyThreshold", "`healthy_threshold`, 1 unless set", "it gets them again after so many answers"},
			{"initialJitter", "`initial_jitter`, at most 30s", "first checks are spread"},
			{"intervalJitter", "`interval_jitter`", "later checks are spread"},
			{"intervalJitterPercent", "`interval_jitter_percent`", "the same, by the interval"},
			{"healthyPanicThreshold", "`healthy_panic_threshold` of the cluster", "with fewer healthy endpoints, all are asked"},
			{"failTrafficOnPanic", "`fail_traffic_on_panic`", "with fewer healthy endpoints, none is asked"},
			{"noTrafficInterval", "`no_traffic_interval`", "the interval before the first request"},
			{"reuseConnection", "`reuse_connection`", "a connection for each check"},
			{"tcp.disabled", "no check", "connections are not looked at"},
			{"tcp.send", "`tcp_health_check.send`", "bytes in base64 that are sent"},
			{"tcp.receive[]", "`tcp_health_check.receive`", "bytes in base64 that must come"},
			{"http.disabled", "no check by HTTP", "the application is not asked"},
			{"http.path", "`http_health_check.path`, `/` unless set", "the path of the check"},
			{"http.expectedStatuses[]", "`expected_statuses`, 200 unless set", "other statuses are failures"},
			{"http.requestHeadersToAdd.set[].name", "`request_headers_to_add`", "headers of the check"},
			{"http.requestHeadersToAdd.set[].value", "its value", "headers of the check"},
			{"http.requestHeadersToAdd.add[].name", "`request_headers_to_add`", "headers of the check"},
			{"http.requestHeadersToAdd.add[].value", "its value", "headers of the check"},
			{"grpc.disabled", "no check by gRPC", "the application is not asked"},
			{"grpc.serviceName", "`grpc_health_check.service_name`", "grpc.health.v1 is asked for it"},
			{"grpc.authority", "`grpc_health_check.authority`", "the authority of the check"},
		},
		"eventLogPath, alwaysLogHealthCheckFailures"},
	{resources.TypeMeshRetry,
		"In `to`. Without one, what no application has seen is sent again (docs/reliability.md). A conf with `http` or `grpc` takes the place of that, but for the choice of other endpoints.",
		append(append([]policyField{
			{"tcp.maxConnectAttempt", "`max_connect_attempts` of the TCP proxy; a change replaces the listener",
				"a connection goes to another endpoint"},
		}, retryRows("http.")...), retryRows("grpc.")...),
		"http.hostSelection[].tags, grpc.hostSelection[].tags"},
	{resources.TypeMeshCircuitBreaker,
		"In `to`. Without one, there are no limits, and endpoints that take no connection are left alone for a while (docs/reliability.md). A change replaces the cluster.",
		[]policyField{
			{"connectionLimits.maxConnectionPools", "`max_connection_pools`", "in the cluster's counters"},
			{"connectionLimits.maxConnections", "`max_connections`", "requests wait for one of so many"},
			{"connectionLimits.maxPendingRequests", "`max_pending_requests`", "503 when more wait"},
			{"connectionLimits.maxRequests", "`max_requests`", "503 when more are under way"},
			{"connectionLimits.maxRetries", "`max_retries`", "no more are sent again at once"},
			{"outlierDetection.disabled", "no `outlier_detection`", "failing endpoints are asked on"},
			{"outlierDetection.interval", "`interval`", "how often ejected endpoints are looked at"},
			{"outlierDetection.baseEjectionTime", "`base_ejection_time`", "how long the first ejection lasts"},
			{"outlierDetection.maxEjectionPercent", "`max_ejection_percent`", "more endpoints are not ejected"},
			{"outlierDetection.splitExternalAndLocalErrors", "`split_external_local_origin_errors`",
				"what the connection did is counted apart"},
			{"outlierDetection.healthyPanicThreshold", "`healthy_panic_threshold`", "below it, all endpoints are asked"},
			{"outlierDetection.detectors.totalFailures.consecutive", "`consecutive_5xx`",
				"an endpoint that fails gets no more requests"},
			{"outlierDetection.detectors.gatewayFailures.consecutive", "`consecutive_gateway_failure`",
				"the same, for 502 to 504"},
			{"outlierDetection.detectors.localOriginFailures.consecutive", "`consecutive_local_origin_failure`",
				"the same, for connections"},
			{"outlierDetection.detectors.successRate.minimumHosts", "`success_rate_minimum_hosts`",
				"fewer endpoints are not compared"},
			{"outlierDetection.detectors.successRate.requestVolume", "`success_rate_request_volume`",
				"who had fewer requests is not compared"},
			{"outlierDetection.detectors.successRate.standardDeviationFactor",
				"`success_rate_stdev_factor`, times 1000", "who is that far below the mean is ejected"},
			{"outlierDetection.detectors.failurePercentage.minimumHosts", "`failure_percentage_minimum_hosts`",
				"fewer endpoints are not judged"},
			{"outlierDetection.detectors.failurePercentage.requestVolume", "`failure_percentage_request_volume`",
				"who had fewer requests is not judged"},
			{"outlierDetection.detectors.failurePercentage.threshold", "`failure_percentage_threshold`",
				"who fails more is ejected"},
		},
		""},
}

// localityRows are the rows of localityAwareness.
var localityRows = []policyField{
	{"localityAwareness.disabled", "endpoints of all zones in one priority",
		"other zones answer though the own one is well"},
	{"localityAwareness.localZone.affinityTags[].key",
		"a locality of the own zone's endpoints that share the tag or label with the caller", "they get their share"},
	{"localityAwareness.localZone.affinityTags[].weight", "its `load_balancing_weight`; of all tags or none; 9, 90, ... unless set, beside 1 for the rest", "they get their share"},
	{"localityAwareness.crossZone.failover[].from.zones[]", "nothing: the rule holds for callers of these zones",
		"it holds for them only"},
	{"localityAwareness.crossZone.failover[].to.type", "a priority after the ones before: zones in it, or not in it; after `None` and `Any` nothing follows", "these zones answer when the ones before cannot"},
	{"localityAwareness.crossZone.failover[].to.zones[]", "the zones of that priority",
		"these zones answer when the ones before cannot"},
	{"localityAwareness.crossZone.failoverThreshold.percentage",
		"`overprovisioning_factor`, 200 (for 50) with `crossZone` unless set",
		"with fewer healthy endpoints, the next priority gets a share"},
}

// hashRows are the rows of a HashPolicy at a place.
func hashRows(at string) []policyField {
	return []policyField{
		{at + "type", "which of the next is read; SourceIP needs none", "one endpoint for one value"},
		{at + "terminal", "`terminal`", "what follows is not hashed"},
		{at + "header.name", "`header.header_name`", "one endpoint for one value"},
		{at + "cookie.name", "`cookie.name`", "one endpoint for one value"},
		{at + "cookie.ttl", "`cookie.ttl`", "a client without the cookie gets one"},
		{at + "cookie.path", "`cookie.path`", "the path of that cookie"},
		{at + "connection.sourceIP", "`connection_properties.source_ip`", "one endpoint for one client"},
		{at + "queryParameter.name", "`query_parameter.name`", "one endpoint for one value"},
		{at + "filterState.key", "`filter_state.key`", "in the configuration only: no filter here leaves one"},
	}
}

// retryRows are the rows of a protocol.
func retryRows(at string) []policyField {
	return []policyField{
		{at + "numRetries", "`num_retries`", "so many more attempts"},
		{at + "perTryTimeout", "`per_try_timeout`", "a longer attempt is given up"},
		{at + "backOff.baseInterval", "`retry_back_off.base_interval`", "the pause between attempts"},
		{at + "backOff.maxInterval", "`retry_back_off.max_interval`", "the longest pause"},
		{at + "rateLimitedBackOff.maxInterval", "`rate_limited_retry_back_off.max_interval`",
			"the longest pause that an answer asks for"},
		{at + "rateLimitedBackOff.resetHeaders[].name", "`reset_headers` of it", "the header that says the pause"},
		{at + "rateLimitedBackOff.resetHeaders[].format", "`format` of the header", "seconds, or a time"},
		{at + "retryOn[]", "`retry_on`, and `retriable_status_codes`", "what is tried again"},
		{at + "retriableRequestHeaders[].name", "`retriable_request_headers`", "only such requests are tried again"},
		{at + "retriableRequestHeaders[].type", "how it is matched", "only such requests are tried again"},
		{at + "retriableRequestHeaders[].value", "what is matched", "only such requests are tried again"},
		{at + "retriableResponseHeaders[].name", "`retriable_headers`", "what has such an answer is tried again"},
		{at + "retriableResponseHeaders[].type", "how it is matched", "what has such an answer is tried again"},
		{at + "retriableResponseHeaders[].value", "what is matched", "what has such an answer is tried again"},
		{at + "hostSelection[].predicate", "`retry_host_predicate` or `retry_priority`; without it, both",
			"another endpoint gets the request"},
		{at + "hostSelection[].updateFrequency", "`update_frequency`, 2 unless set", "endpoints of another zone get it"},
		{at + "hostSelectionMaxAttempts", "`host_selection_retry_max_attempts`, 5 unless set",
			"another endpoint gets the request"},
	}
}
