package xds

import (
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/zone/matching"
)

// shared holds what proxies have in common. What is in a table was made of its key alone.
type shared struct {
	alike alike
	// Of what proxies send: plan.go, logging.go, outbound_cluster.go, outbound_listener.go, named.go.
	plans     table[planKey, plan]
	logs      table[logsKey, logRules]
	parts     table[partKey, clusterPart]
	sockets   table[socketKey, socket]
	outbounds table[listenedKey, listened]
	names     table[namesKey, resource]
	// Of MeshTraces: tracing.go.
	traces     table[string, traceConf]
	traceRules table[string, matching.ProxyRule]
	providers  table[providerKey, provider]
	// Of other policies on whole proxies, by the policies that select the inbound or the proxy: whole.go,
	// received_connections.go, securing.go, logging_inbound.go.
	passed          table[passedKey, observedPart]
	measured        table[measureKey, observedPart]
	metricRules     table[string, metricRule]
	metrics         table[metricsKey, anypb.Any]
	limits          table[string, connectionLimits]
	breakers        table[string, inboundBreaker]
	tls             table[string, tlsRule]
	inboundLogs     table[inboundLogsKey, inboundLogs]
	inboundLogRules table[string, inboundLogRules]
	// Of inbounds: cluster.go, listener.go, admin.go, connection_rate.go, permissions.go, received.go.
	applications  table[applicationKey, resource]
	inbounds      table[listenerKey, resource]
	fixed         table[fixedKey, fixedListeners]
	filters       table[filtersKey, filterList]
	answers       table[answersKey, anypb.Any]
	rates         table[rateKey, rateLimiter]
	permitted     table[permittedKey, permitted]
	inboundRoutes table[inboundRoutesKey, inboundRoutes]
	// What MeshProxyPatches read: patching.go.
	opened table[*resource, opened]
}
