package xds

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
	traces    table[string, traceConf]
	providers table[providerKey, provider]
}
