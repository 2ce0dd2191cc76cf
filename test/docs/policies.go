package main

import (
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// policyField describes one field of a conf for inbound traffic: its form in Envoy, and its visible effect.
type policyField struct {
	field, envoy, seen string
}

// policyType is the table of a type.
type policyType struct {
	resources.Type
	intro  string
	fields []policyField
	// other are fields that are stored but not enforced. `apply` reports them.
	other string
}

// policyTypes are the types of policies whose fields the page lists. A test compares them with
// resources.ReceivedFields.
var policyTypes = []policyType{
	{resources.TypeMeshTimeout,
		"In `rules`, `from` and `default`, for requests that HTTP inbounds receive, and for connections, also of TCP. Without one, only the caller's limits hold. " +
			"What limits connections counts in rules without matches only. `idleTimeout`, `maxConnectionDuration` and `requestHeadersTimeout` are in the listener of an HTTP inbound: " +
			"a change of one replaces it, and its connections drain. On TCP, a change of `idleTimeout` is for new connections.",
		[]policyField{
			{"connectionTimeout", "`connect_timeout` of the inbound's cluster",
				"503 when the application takes no connection for that long"},
			{"idleTimeout", "`idle_timeout` of the connection manager, or of the TCP proxy",
				"a connection on which nothing moves is closed"},
			{"http.maxConnectionDuration", "`max_connection_duration` of the connection manager; 0 is none",
				"a connection ends, after the request on it"},
			{"http.requestHeadersTimeout", "`request_headers_timeout` of the connection manager",
				"half a header is answered with 408"},
			{"http.requestTimeout", "the route's `timeout`; 0 is none", "a longer request is answered with 504"},
			{"http.streamIdleTimeout", "the route's `idle_timeout`",
				"a request on which nothing moves is answered with 504; one that trickles goes on"},
			{"http.maxStreamDuration", "the route's `max_stream_duration`", "a stream ends, whatever moves on it"},
		},
		""},
	{resources.TypeMeshCircuitBreaker,
		"In `rules`, `from` and `default`, for what the application of an inbound takes of all its clients together, in HTTP and TCP. Without one, there are no limits. " +
			"A change replaces the inbound's cluster, and no listener. `rules[].matches` is not enforced, and neither is `outlierDetection`: an inbound has one endpoint.",
		[]policyField{
			{"connectionLimits.maxConnectionPools", "`max_connection_pools` of the inbound's cluster",
				"503 when a request needs one more"},
			{"connectionLimits.maxConnections", "`max_connections`",
				"requests wait for one of so many; on TCP, more connections are closed"},
			{"connectionLimits.maxPendingRequests", "`max_pending_requests`", "503 when more wait"},
			{"connectionLimits.maxRequests", "`max_requests`", "503 when more are under way, over HTTP/2"},
			{"connectionLimits.maxRetries", "`max_retries`", "no more are sent again at once; nothing is, unless a MeshProxyPatch makes the inbound"},
		},
		"outlierDetection"},
	{resources.TypeMeshFaultInjection,
		"In `rules`, `from` and `default`, for requests that HTTP inbounds receive. A conf has one item in `http`, with one or more of the three. A request that a " +
			"permission denies is denied; an aborted one counts for no rate limit. `to` is not enforced. A policy with `from` of kind Mesh and one with `rules` for all requests " +
			"are merged, and the list of the one that comes last counts; for requests that a match of `rules` holds for, only that rule counts.",
		[]policyField{
			{"http[].abort.httpStatus", "`abort.http_status` of the route's fault",
				"that status, and the application sees nothing"},
			{"http[].abort.percentage", "`abort.percentage`, to four decimals", "that share of requests"},
			{"http[].delay.value", "`delay.fixed_delay`", "the answer comes that much later"},
			{"http[].delay.percentage", "`delay.percentage`", "that share of requests"},
			{"http[].responseBandwidth.limit", "`response_rate_limit.fixed_limit`, in KiB a second, at least 1",
				"64 KiB at 1Mbps take half a second"},
			{"http[].responseBandwidth.percentage", "`response_rate_limit.percentage`", "that share of requests"},
		},
		""},
	{resources.TypeMeshRateLimit,
		"In `rules`, `from` and `default`: `local.http` for requests that HTTP inbounds receive, `local.tcp` for connections to any inbound. Each proxy counts for itself, over all its clients. Each route has a " +
			"bucket of its own, so rules with several matches count each match apart, and a change of any policy on the inbound's routes fills the buckets. An inbound has one bucket for its connections. " +
			"Envoy counts a connection before its handshake, so those that permissions deny count too. It has no request, so `local.tcp` in a rule with `matches` is not enforced. `to` is not enforced.",
		[]policyField{
			{"local.http.disabled", "no limit on the route", "what another rule limits goes through"},
			{"local.http.requestRate.num", "`token_bucket.max_tokens` and `tokens_per_fill` of the route",
				"the next request gets 429"},
			{"local.http.requestRate.interval", "`token_bucket.fill_interval`, at least 50ms",
				"after it, requests go through again"},
			{"local.http.onRateLimit.status", "`status`", "that status in place of 429"},
			{"local.http.onRateLimit.headers.set[].name", "`response_headers_to_add`, in place of others of the name",
				"the header in the answer"},
			{"local.http.onRateLimit.headers.set[].value", "its value, as it is written", "the value in the answer"},
			{"local.http.onRateLimit.headers.add[].name", "`response_headers_to_add`, beside others of the name",
				"the header in the answer"},
			{"local.http.onRateLimit.headers.add[].value", "its value, as it is written", "the value in the answer"},
			{"local.tcp.disabled", "no limit on the inbound", "what another policy limits goes through"},
			{"local.tcp.connectionRate.num", "`token_bucket.max_tokens` and `tokens_per_fill` of the inbound's filter, by ECDS",
				"the next connection is closed; those that are open stay"},
			{"local.tcp.connectionRate.interval", "`token_bucket.fill_interval`, at least 50ms",
				"after it, connections go through again"},
		},
		""},
	{resources.TypeMeshAccessLog,
		"In `to` for what the application sends to outbounds, and in `rules`, `from` and `default` for what inbounds receive: each HTTP request, and each connection on TCP. " +
			"A policy that comes, goes or changes replaces the listeners of the HTTP traffic that it logs, whose connections drain; on TCP it is for new connections. Another address of an OpenTelemetry collector replaces none. In formats, Envoy's commands about requests and " +
			"connections may stand (others are refused, since a proxy refuses the listener), and `%KUMA_MESH%`, `%KUMA_ZONE%`, `%KUMA_SOURCE_SERVICE%` (on inbounds the verified SPIFFE ID " +
			"of the client), `%KUMA_DESTINATION_SERVICE%`, `%KUMA_SOURCE_ADDRESS%` and `%KUMA_TRAFFIC_DIRECTION%`. Without a format a line says these, and on inbounds the policy that decided. " +
			"Collectors are reached in the clear. A file that the proxy cannot open is left out, and is among the problems of its DataplaneInsight, until the policy is written anew or the proxy restarts. `rules[].matches` is not enforced.",
		[]policyField{
			{"backends[].type", "which of the next is read", "lines come there"},
			{"backends[].file.path", "a file, stdout or stderr logger", "lines in the file; `/dev/stdout` is the proxy's"},
			{"backends[].file.format.type", "Plain: `text_format_source`; Json: `json_format`",
				"text, or one JSON object a line"},
			{"backends[].file.format.plain", "the text, and an end of line", "the text with what the commands stand for"},
			{"backends[].file.format.json[].key", "a key of `json_format`", "the key in each object"},
			{"backends[].file.format.json[].value", "its value", "what the commands stand for"},
			{"backends[].file.format.omitEmptyValues", "`omit_empty_values`", "nothing in place of `-`"},
			{"backends[].openTelemetry.endpoint", "an OpenTelemetry logger, and a cluster", "records come over OTLP/gRPC"},
			{"backends[].openTelemetry.attributes[].key", "a key of `attributes`", "the attribute of each record"},
			{"backends[].openTelemetry.attributes[].value", "its value", "what the commands stand for"},
			{"backends[].openTelemetry.body", "`body`: a string, or a value of OTLP", "the record's body"},
		},
		"backends[].tcp"},
	{resources.TypeMeshMetric,
		"In `default`, for the proxy's own metrics, which it shows on a listener of its own; no other listener moves. The bootstrap must be of this version or later, " +
			"with an `--admin-address` that names a port: otherwise the policy is among the problems of the DataplaneInsight and not enforced there. Nothing else of the admin " +
			"interface is reachable by the listener. What is selected by the names that Prometheus shows, and what applications say, is done by a Lua filter on that listener: without " +
			"either there is none. Applications are of the proxy's machine: on loopback, or on an address of the Dataplane. Without profiles, all metrics are shown. " +
			"Envoy takes a sender of metrics, and its interval, from its bootstrap only: `causeway-zone bootstrap --push-metrics-every 30s` gives it one, and the policy a collector. Such proxies " +
			"send all that they ever counted, so `sidecar` and `applications` have no effect there, which is among the problems, too.",
		[]policyField{
			{"backends[].type", "which of the next is read", "the proxy answers"},
			{"backends[].openTelemetry.endpoint", "the cluster `causeway_push_to`, for which that of the bootstrap stands", "metrics come over OTLP/gRPC"},
			{"backends[].prometheus.port", "the port of the listener `causeway_metrics`, on the Dataplane's address; 5670 unless set", "the proxy answers there"},
			{"backends[].prometheus.path", "its one route; `/metrics` unless set",
				"the metrics, in Prometheus' text; 404 elsewhere"},
			{"backends[].prometheus.tls.mode", "`ActiveMTLSBackend`: mutual TLS with the mesh's identities; `Disabled`: none", "a client without an identity is refused"},
			{"sidecar.includeUnused", "without it, `usedonly`", "also metrics that were never counted"},
			{"sidecar.regex", "`filter`, held against Envoy's names, with dots", "only metrics whose names it matches"},
			{"sidecar.profiles.appendProfiles[].name", "`filter` for All, Basic or None; with `regex` or `include` a Lua filter",
				"Basic: requests, connections, permissions and the proxy's state"},
			{"sidecar.profiles.exclude[].type", "how a Lua filter compares: Exact, Prefix, Contains, or Regex of RE2", "metrics that it selects are left out"},
			{"sidecar.profiles.exclude[].match", "what a Lua filter compares with the names that Prometheus shows", "metrics that it selects are left out"},
			{"sidecar.profiles.include[].type", "the same", "metrics that it selects are there, whatever else leaves them out but `regex`"},
			{"sidecar.profiles.include[].match", "the same", "metrics that it selects are there, whatever else leaves them out but `regex`"},
			{"applications[].name", "the label `application` of the application's metrics; none unless set", "the label in each of them"},
			{"applications[].address", "the address of a cluster; 127.0.0.1 unless set", "the application's metrics stand behind the proxy's"},
			{"applications[].port", "its port", "the same, and `causeway_application_up` is 0 if it does not answer in 2 s"},
			{"applications[].path", "the path that a Lua filter asks for; `/metrics/prometheus` unless set", "the same"},
		},
		"backends[].openTelemetry.refreshInterval, backends[].prometheus.clientId"},
	{resources.TypeMeshTLS,
		"In `rules`, `from` and `default`, for connections between proxies of the mesh. Without one, inbounds take mutual TLS only, of version 1.2 or 1.3. `tlsVersion` and " +
			"`tlsCiphers` are for what a proxy receives and sends, so they stand in policies whose `targetRef` is of kind Mesh. A change of them replaces listeners and clusters, " +
			"whose connections drain: a filter chain holds them, and nothing else can. `mode` is of inbounds. A change of it adds or takes away a filter chain beside the one with TLS, so " +
			"that only clients in the clear lose their connections. What `Permissive` lets in is in [Permissions](../permissions.md#clients-in-the-clear). An inbound whose " +
			"application speaks first takes mutual TLS only, which is among the problems of the DataplaneInsight. `rules[].matches` is not enforced, and neither are `tlsCiphers` where " +
			"the oldest version is TLS13, which has its own.",
		[]policyField{
			{"tlsVersion.min", "`tls_minimum_protocol_version` of inbounds and outbounds: TLS12 or TLS13; TLSAuto is TLS12", "a client of an older version is refused in its handshake"},
			{"tlsVersion.max", "`tls_maximum_protocol_version`; TLSAuto is TLS13", "connections are of no newer version"},
			{"tlsCiphers[]", "`cipher_suites`, of TLS 1.2", "a client with other ciphers is refused in its handshake"},
			{"mode", "Permissive: a filter chain for `raw_buffer`, with filters of its own",
				"clients in the clear are judged, and get in where everybody may"},
		},
		""},
	{resources.TypeMeshProxyPatch,
		"In `default`, for Envoy's resources as this server makes them. Policies are applied in the order of merging, each to what those before it made, and each as a whole or not at all. " +
			"It may move listeners and clusters, whose connections drain. Values are checked where they are written, and results before a proxy is sent them; what a proxy refuses is taken back. Each costs that policy only, " +
			"which is among the problems of the DataplaneInsight, and not enforced there. What a result must not be is in [Security](../security.md#what-is-protected-by-what): " +
			"only a policy with the label `causeway.io/unguarded: \"true\"`, whose writer needs the verb `unguard`, may have it. With the label `causeway.io/required: \"true\"`, nobody reaches a proxy on which the policy cannot have its effect. Origins are `inbound`, `outbound`, `gateway`, `prometheus` and `other`. Inbounds are called " +
			"`self_inbound_dp_<name>`, and their listener, routes and virtual host like that; outbounds are called by the KRI of their service, with its port. `virtualHost` is for routes within listeners and for those that are resources of their own. " +
			"A merged value cannot set a field to false, 0 or the first of its names: write a JSON patch. Permissions come by extension discovery, and are not patched.",
		patchRows(),
		""},
	{resources.TypeMeshPassthrough,
		"In `default`, for connections that leave the mesh, on proxies that their machine redirects connections to: those whose Dataplane has " +
			"`networking.transparentProxying.redirectPortOutbound` ([Names and egress](../names.md)). On others it is among the problems of the DataplaneInsight. Without one, the Mesh's `networking.outbound.passthrough` " +
			"says whether all goes through; it does unless that is `false`. Policies that are merged add their matches, and the mode of the last counts. Nothing goes to loopback, link-local or multicast addresses, whatever a policy says. A match is a filter chain of its own: " +
			"the listener changes in place, and only connections of a match that is gone drain. A proxy that must read TLS or HTTP to decide has inspectors; the first match that needs them, and the last that goes, replace the listener for redirected connections, and no other. What an application says of itself is believed: a domain is no address. " +
			"`TestPassthrough` and `TestPassthroughByName` (`zone/envoy_passthrough_linux_test.go`) show it with redirects of the kernel.",
		[]policyField{
			{"passthroughMode", "All: a chain to `causeway_passthrough`, an `ORIGINAL_DST` cluster, for all that has no other; Matched: one for each match; None, unless set: none",
				"a connection goes through, or is closed"},
			{"appendMatch[].type", "Domain: a server name, or routes by Host; IP and CIDR: an input of the destination's address", "other destinations are closed"},
			{"appendMatch[].value", "what is matched; `*.` before a domain is any name that ends so", "the destination goes through, and others do not; another Host gets 403"},
			{"appendMatch[].port", "an input of the destination's port; any unless set", "other ports are closed"},
			{"appendMatch[].protocol", "tls: `transport_protocol`; http, http2 and grpc: `application_protocol`; tcp and mysql: nothing", "what speaks something else is closed"},
		},
		""},
	{resources.TypeMeshTrace,
		"In `default`, for HTTP traffic in both directions: requests that inbounds receive, and those that the application sends to outbounds. A proxy has one backend. " +
			"A policy that comes or goes, or sends spans in another format or to another URL, replaces the proxy's HTTP listeners, whose connections drain; another endpoint of OpenTelemetry, share or tag moves none. " +
			"Collectors are reached in the clear. Over Zipkin, the service of a span is the mesh.",
		[]policyField{
			{"backends[].type", "which of the next is read", "spans come in that format"},
			{"backends[].openTelemetry.endpoint", "an `OpenTelemetryConfig`, and the address of the cluster `causeway_trace`", "spans come over OTLP/gRPC; their `service.name` is the workload, or the Dataplane's name"},
			{"backends[].zipkin.url", "a `ZipkinConfig`: `collector_endpoint`, `collector_hostname`, and the cluster's address", "spans come by POST"},
			{"backends[].zipkin.apiVersion", "`collector_endpoint_version`", "spans in JSON or protobuf"},
			{"backends[].zipkin.traceId128bit", "`trace_id_128bit`", "32 hexadecimal digits in place of 16"},
			{"backends[].zipkin.sharedSpanContext", "`shared_span_context`, true unless set",
				"both ends of a call have one span, or one each"},
			{"backends[].datadog.url", "a `DatadogConfig`, and the address of the cluster `causeway_trace`", "spans come to the agent, by PUT of `/v0.4/traces`; their service is the workload, or the Dataplane's name"},
			{"sampling.overall", "`overall_sampling` of each route", "0 traces nothing"},
			{"sampling.random", "`random_sampling` of each route", "0 traces only what clients force"},
			{"sampling.client", "`client_sampling` of each route", "a request with `x-client-trace-id` is traced"},
			{"tags[].name", "`custom_tags` of each route", "the tag in spans of both sides"},
			{"tags[].literal", "its `literal`", "the value in each span"},
			{"tags[].header.name", "its `request_header`", "the header's value"},
			{"tags[].header.default", "its `default_value`", "the value of requests without the header"},
		},
		"backends[].datadog.splitService"},
}

// patchRows are the fields of the five kinds of a MeshProxyPatch.
func patchRows() (out []policyField) {
	for _, kind := range []struct{ name, message, adds string }{
		{"cluster", "Cluster", "Add"}, {"listener", "Listener", "Add"},
		{"networkFilter", "Filter", "AddFirst, AddLast (before the filter that ends the chain), AddBefore, AddAfter"},
		{"httpFilter", "HttpFilter", "AddFirst, AddLast (before the router), AddBefore, AddAfter"},
		{"virtualHost", "VirtualHost", "Add"},
	} {
		at := "appendModifications[]." + kind.name + "."
		out = append(out,
			policyField{at + "operation", kind.adds + ", Patch, Remove", "the configuration of the proxy differs so"},
			policyField{at + "value", "a " + kind.message + " as YAML: added, or merged: fields replace, lists are appended",
				"the value in the configuration of the proxy"},
			policyField{at + "jsonPatches[]", "add, remove, replace, move and copy of RFC 6902, on the JSON form in camel case", "the same"},
			policyField{at + "match.origin", "what made the resource", "others stay as they are"},
			policyField{at + "match.name", "its name", "others stay as they are"},
		)
		switch kind.name {
		case "listener":
			out = append(out, policyField{at + "match.tags", "tags of the inbound", "others stay as they are"})
		case "networkFilter", "httpFilter":
			out = append(out, policyField{at + "match.listenerName", "its listener's name", "others stay as they are"},
				policyField{at + "match.listenerTags", "tags of the listener's inbound", "others stay as they are"})
		case "virtualHost":
			out = append(out, policyField{at + "match.routeConfigurationName", "its route configuration's name",
				"others stay as they are"})
		}
	}
	return out
}

// policiesPage returns the page with the table above.
func policiesPage(root string) (string, error) {
	var b strings.Builder
	b.WriteString(`# Policies on what a workload receives, and on whole proxies

This page is written by ` + "`make docs`" + ` from the code: change the code, not the page.

What each field of these policies becomes in Envoy, and what it does. Fields that are on no list here and that the type has are stored, told of by
` + "`apply`" + `, and *not enforced* in ` + "`rollout status`" + `. The last column names the test that shows the field in a real Envoy. ` + "`TestEnvoyTakesAllThatIsGenerated`" + ` shows
that Envoy takes it, and tests beside it (` + "`zone/xds/enforced_fields_test.go`" + `) that its configuration is another one without it. Which of them replace
a listener is in [a table of its own](#what-replaces-a-listener).

` + "`rules[].matches`" + ` may name ` + "`spiffeId`, `path` and `method`" + `; all that one match names must hold, and one match of the list is enough. The first rule counts
whose match holds: an exact path before an expression before a prefix, the longer first, with a method before without, an exact SPIFFE ID before a
prefix. ` + "`from`" + ` takes kind Mesh only, since identities carry no tags. A gRPC server that is its own proxy takes none of these policies, and its
DataplaneInsight says so. A path by a regular expression does not go together with paths of another type's rules: that combination has no
effect, and is among the proxy's problems.

What a proxy's problems say of a policy is in the policy's ` + "`status.conditions`" + ` and a finding of ` + "`lint`" + `, each with the proxy and the field, and ` + "`rollout status`" + ` does not
count the policy as enforced there. Other policies are not concerned.
`)
	writeTypes(&b, policyTypes, shownReceived)
	b.WriteString("\n# Policies on what a workload sends\n\nFields of confs in `to`, as above. MeshAccessLog has the same fields there, shown by `TestAccessLogsByPolicy`.\n")
	writeTypes(&b, sentTypes, shownSent)
	writeGateways(&b)
	b.WriteString("\n# What is no policy\n\nResources beside policies that configure proxies in the same way.\n")
	writeTypes(&b, otherTypes, shownElsewhere)
	err := writeMoves(&b, root)
	return b.String(), err
}

func writeTypes(b *strings.Builder, types []policyType, shown map[resources.Type]shows) {
	for _, t := range types {
		fmt.Fprintf(b, "\n## %s\n\n%s\n\n| field | in Envoy | seen | by |\n| --- | --- | --- | --- |\n", t.Type, t.intro)
		for _, f := range t.fields {
			fmt.Fprintf(b, "| `%s` | %s | %s | `%s` |\n", f.field, f.envoy, f.seen, shown[t.Type].of(f.field))
		}
		if t.other != "" {
			fmt.Fprintf(b, "\nNot enforced: `%s`.\n", strings.ReplaceAll(t.other, ", ", "`, `"))
		}
	}
}
