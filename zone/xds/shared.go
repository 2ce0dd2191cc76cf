package xds

import (
	"github.com/causeway-mesh/causeway/zone/matching"
)

// shared holds what proxies have in common. An entry depends only on its key.
type shared struct {
	alike alike
	// For outgoing traffic: plan.go, plain_routes.go, logging.go, outbound_cluster.go, cluster_config.go, external_shared.go,
	// outbound_listener.go, named.go.
	plans     table[planKey, plan]
	plain     table[plainKey, plainRoutes]
	rules     table[rulesKey, matching.ToRules]
	logs      table[logsKey, logRules]
	parts     table[partKey, clusterPart]
	configs   table[clusterKey, clusterConfig]
	sockets   table[socketKey, stencil]
	external  table[externalKey, externalCluster]
	outbounds table[listenedKey, listened]
	names     table[namesKey, resource]
	// outboundLogs are those that say nothing of the proxy: logging_outbound.go.
	outboundLogs table[outboundLogsKey, outboundLogs]
	// For egresses: egress_listener.go.
	doors table[doorKey, chainParts]
	// For gateways: gateway_shared.go, gateway_listener.go, gateway_hosts.go.
	gatewayParts table[gatewayPartKey, gatewayPart]
	gatewayPorts table[gatewayPortKey, gatewayPart]
	gatewayRules table[gatewayRulesKey, gatewayRules]
	// For MeshTraces: tracing.go, traced.go.
	traces     table[string, traceConf]
	traced     table[tracedKey, resource]
	traceRules table[string, matching.ProxyRule]
	providers  table[providerKey, provider]
	// For other policies on whole proxies, by the policies that select the inbound or the proxy: whole.go,
	// received_connections.go, securing.go, logging_inbound.go.
	passed          table[passedKey, observedPart]
	measured        table[measureKey, observedPart]
	metricRules     table[string, metricRule]
	metrics         table[metricsKey, shownMetrics]
	limits          table[string, connectionLimits]
	breakers        table[string, inboundBreaker]
	tls             table[string, tlsRule]
	inboundLogs     table[inboundLogsKey, inboundLogs]
	inboundLogRules table[string, inboundLogRules]
	// For inbounds: cluster.go, securing.go, admin.go, connection_rate.go, permissions.go, received.go.
	applications  table[applicationKey, resource]
	fixed         table[fixedKey, fixedListeners]
	filters       table[filtersKey, filterList]
	answers       table[answersKey, stencil]
	chains        table[chainKey, chainParts]
	rates         table[rateKey, rateLimiter]
	permitted     table[permittedKey, permitted]
	inboundRoutes table[inboundRoutesKey, inboundRoutes]
	// For MeshProxyPatches: patchable.go, patching.go.
	opened table[openedKey, opened]
	added  table[addedKey, resource]
}
