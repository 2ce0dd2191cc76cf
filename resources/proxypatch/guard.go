package proxypatch

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
)

// Guard decides which results an ordinary patch may have. It compares the configuration before and after, however the
// patch is written: exposed listeners keep their address, TLS and permissions, unchanged and in this order; new
// listeners are on loopback only; nothing bypasses the permissions on the way to the application, the admin interface
// or the zone; and nothing reads files or secrets of the machine.
type Guard struct {
	// Own are the addresses of the Dataplane.
	Own []netip.Addr
	// Original is the configuration before any patch. Its origins hold, whatever patches have changed since.
	Original *Config
	// Trusted reports whether an address or name with a port may lead to a port of the server that trusts callers on
	// loopback. It may be nil.
	Trusted func(address string, port uint32) bool
}

// Check returns why an ordinary patch may not change before to after, or nil if it may.
func (g *Guard) Check(before, after *Config) error {
	protected := protectedClusters(g.Original)
	for _, name := range slices.Sorted(maps.Keys(after.Clusters)) {
		if why := g.cluster(before.Clusters[name], after.Clusters[name]); why != "" {
			return refusal(kindCluster, name, why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.Listeners)) {
		if why := g.listener(before.Listeners[name], after.Listeners[name], protected); why != "" {
			return refusal(kindListener, name, why)
		}
	}
	// Most patches change no routes.
	judges := sync.OnceValue(func() map[string]bool { return discoveredFilters(g.Original) })
	for _, name := range slices.Sorted(maps.Keys(after.Routes)) {
		if why := g.routes(before.Routes[name], after.Routes[name], protected, judges); why != "" {
			return refusal("route configuration", name, why)
		}
	}
	return nil
}

func refusal(kind, name, why string) error {
	return fmt.Errorf("the %s %s %s%s", kind, name, why, NeedsVerb)
}

// protectedClusters are the clusters that lead to applications, so that only their own inbounds may use them.
func protectedClusters(c *Config) map[string]bool {
	out := map[string]bool{}
	for name, r := range c.Clusters {
		if r.Origin == OriginInbound {
			out[name] = true
		}
	}
	return out
}

// isExposed reports whether others besides the application may reach a listener or a route configuration.
func (g *Guard) isExposed(name string, of map[string]*Resource, now *Resource) bool {
	if first := of[name]; first != nil {
		return first.Origin != OriginOutbound
	}
	return now.Origin != OriginPatch
}

// clusterFields are the fields of a cluster that an ordinary patch may change.
var clusterFields = []string{
	"alt_stat_name", "connect_timeout", "per_connection_buffer_limit_bytes", "lb_policy", "health_checks",
	"max_requests_per_connection", "circuit_breakers", "common_http_protocol_options", "http_protocol_options",
	"http2_protocol_options", "typed_extension_protocol_options", "dns_refresh_rate", "dns_jitter",
	"dns_failure_refresh_rate", "respect_dns_ttl", "dns_lookup_family", "wait_for_warm_on_init", "outlier_detection",
	"cleanup_interval", "common_lb_config", "upstream_connection_options", "close_connections_on_host_health_failure",
	"ignore_health_on_host_removal", "load_balancing_policy", "track_timeout_budgets", "track_cluster_stats",
	"preconnect_policy", "connection_pool_per_downstream_connection", "ring_hash_lb_config", "maglev_lb_config",
	"least_request_lb_config", "round_robin_lb_config",
}

func (g *Guard) cluster(before, after *Resource) string {
	if before == nil {
		if g.Original.Clusters[after.Name] != nil {
			return takenAway
		}
		return g.added(after.Message)
	}
	if before.Message == after.Message {
		return ""
	}
	if field := differs(before.Message, after.Message, clusterFields...); field != "" {
		return "would change its " + field
	}
	switch g.origin(before) {
	case OriginOutbound:
	case OriginPatch:
		if why := g.added(after.Message); why != "" {
			return why
		}
	default:
		// The proxy sends checks by itself, and nobody judges them.
		if field := differs(checksOf(before.Message), checksOf(after.Message)); field != "" {
			return "would change its " + field
		}
	}
	// An HTTP filter of the cluster would change requests after they were judged.
	if why := more(g.Original.Clusters[before.Name], before, after, exposed, nil); why != "" {
		return why
	}
	if field := changedOption(before.Message.(*clusterv3.Cluster), after.Message.(*clusterv3.Cluster)); field != "" {
		return fmt.Sprintf("would change the %s of its typed_extension_protocol_options", field)
	}
	return ""
}

// origin returns the first origin of a cluster.
func (g *Guard) origin(r *Resource) string {
	if first := g.Original.Clusters[r.Name]; first != nil {
		return first.Origin
	}
	return r.Origin
}

// checksOf returns a cluster with nothing but the health checks of another.
func checksOf(m proto.Message) proto.Message {
	return &clusterv3.Cluster{HealthChecks: m.(*clusterv3.Cluster).GetHealthChecks()}
}

// callerFields are the fields of a listener for the application that an ordinary patch may change. What the listener
// leads to is checked as a whole.
var callerFields = append([]string{"filter_chains", "default_filter_chain", "access_log"}, listenerFields...)

// listenerFields are the fields of any listener that an ordinary patch may change.
var listenerFields = []string{
	"stat_prefix", "per_connection_buffer_limit_bytes", "listener_filters_timeout", "tcp_backlog_size",
	"max_connections_to_accept_per_socket_event", "connection_balance_config", "tcp_fast_open_queue_length",
}

func (g *Guard) listener(before, after *Resource, protected map[string]bool) string {
	now := after.Message.(*listenerv3.Listener)
	if before == nil {
		if g.Original.Listeners[after.Name] != nil {
			return takenAway
		}
		if why := g.added(now); why != "" {
			return why
		}
		if why := gained(nil, nil, dangers(now, ofCallers, protected)); why != "" {
			return why
		}
		return g.portTaken(now)
	}
	if before.Message == after.Message {
		return ""
	}
	then := before.Message.(*listenerv3.Listener)
	if g.isExposed(before.Name, g.Original.Listeners, before) {
		if why := exposedListener(then, now); why != "" {
			return why
		}
		return more(g.Original.Listeners[before.Name], before, after, exposed, nil)
	}
	if field := differs(then, now, callerFields...); field != "" {
		return "would change its " + field
	}
	return more(g.Original.Listeners[before.Name], before, after, ofCallers, protected)
}

// more returns the first danger that a resource has gained and that is not the proxy's own, or "".
func more(own, before, after *Resource, at place, protected map[string]bool) string {
	var mine []danger
	if own != nil {
		mine = dangers(own.Message, at, protected)
	}
	return gained(mine, dangers(before.Message, at, protected), dangers(after.Message, at, protected))
}

func (g *Guard) routes(before, after *Resource, protected map[string]bool, judges func() map[string]bool) string {
	if before == nil || before.Message == after.Message {
		return ""
	}
	then, now := before.Message.(*routev3.RouteConfiguration), after.Message.(*routev3.RouteConfiguration)
	if g.isExposed(before.Name, g.Original.Routes, before) {
		if why := exposedRoutes(then, now, judges()); why != "" {
			return why
		}
		return more(g.Original.Routes[before.Name], before, after, exposed, nil)
	}
	return more(g.Original.Routes[before.Name], before, after, ofCallers, protected)
}
