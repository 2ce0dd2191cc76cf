package proxypatch

import (
	"fmt"
	"maps"
	"net/netip"

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
	// Kept are names of HTTP filters that the patch does not configure for routes that others reach: those that
	// operators' patches added, if an owner of a namespace wrote it.
	Kept map[string]bool
}

// Check returns why an ordinary patch may not change before to after, or nil if it may.
func (g *Guard) Check(before, after *Config) error {
	nouns := [resourceKinds]string{clusters: kindCluster, listeners: kindListener, routes: "route configuration"}
	var protected, judges map[string]bool
	for k := range resourceKinds {
		names := after.differing(before, k)
		if k != clusters && len(names) > 0 && protected == nil {
			protected = protectedClusters(g.Original)
		}
		for _, name := range names {
			if after.all(k)[name] == nil {
				continue
			}
			j, err := g.judge(g.Original.all(k)[name], before.all(k)[name], after.all(k)[name])
			if err != nil {
				return err
			}
			var why string
			switch k {
			case clusters:
				why = g.cluster(j)
			case listeners:
				why, err = g.listener(j, protected)
			default:
				if j.exposed() && judges == nil { // most patches change no routes
					judges, err = discoveredFilters(g.Original)
				}
				if err == nil {
					why = g.routes(j, protected, judges)
				}
			}
			if err != nil {
				return err
			}
			if why != "" {
				return refusal(nouns[k], name, why)
			}
		}
	}
	return nil
}

// judged is a resource that a patch changed or added. own is nil if the proxy has it by patches only, then if the patch
// added it.
type judged struct {
	*Resource
	own, then, now proto.Message
	// first is the origin of the resource before any patch.
	first string
}

func (g *Guard) judge(own, before, after *Resource) (j *judged, err error) {
	j = &judged{Resource: after, first: after.Origin}
	if own != nil {
		j.first = own.Origin
	}
	for _, side := range []struct {
		r    *Resource
		into *proto.Message
	}{{own, &j.own}, {before, &j.then}, {after, &j.now}} {
		if *side.into, err = g.Original.Read(side.r); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// exposed reports whether others besides the application may reach a listener or a route configuration.
func (j *judged) exposed() bool {
	if j.own != nil {
		return j.first != OriginOutbound
	}
	return j.first != OriginPatch
}

// more returns the first danger that the resource has gained and that is not the proxy's own, or "".
func (j *judged) more(at exposure, protected map[string]bool) string {
	return gained(dangers(j.own, at, protected), dangers(j.then, at, protected), dangers(j.now, at, protected))
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

func (g *Guard) cluster(j *judged) string {
	if j.then == nil {
		if j.own != nil {
			return takenAway
		}
		return g.added(j.now, j.forbidden)
	}
	if field := differs(j.then, j.now, clusterFields...); field != "" {
		return "would change its " + field
	}
	switch j.first {
	case OriginOutbound:
	case OriginPatch:
		if why := g.added(j.now, j.forbidden); why != "" {
			return why
		}
	default:
		// The proxy sends checks by itself, and nobody judges them.
		if field := differs(checksOf(j.then), checksOf(j.now)); field != "" {
			return "would change its " + field
		}
	}
	// An HTTP filter of the cluster would change requests after they were judged.
	if why := j.more(exposed, nil); why != "" {
		return why
	}
	if field := changedOption(j.then.(*clusterv3.Cluster), j.now.(*clusterv3.Cluster)); field != "" {
		return fmt.Sprintf("would change the %s of its typed_extension_protocol_options", field)
	}
	return ""
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

func (g *Guard) listener(j *judged, protected map[string]bool) (why string, err error) {
	now := j.now.(*listenerv3.Listener)
	if j.then == nil {
		if j.own != nil {
			return takenAway, nil
		}
		if why := g.added(now, j.forbidden); why != "" {
			return why, nil
		}
		if why := gained(nil, nil, dangers(now, ofCallers, protected)); why != "" {
			return why, nil
		}
		return g.portTaken(now)
	}
	then := j.then.(*listenerv3.Listener)
	if j.exposed() {
		if why := exposedListener(then, now); why != "" {
			return why, nil
		}
		return j.more(exposed, nil), nil
	}
	if field := differs(then, now, callerFields...); field != "" {
		return "would change its " + field, nil
	}
	return j.more(ofCallers, protected), nil
}

func (g *Guard) routes(j *judged, protected, judges map[string]bool) (why string) {
	if !j.exposed() {
		return j.more(ofCallers, protected)
	}
	filters := maps.Clone(judges)
	maps.Copy(filters, g.Kept)
	if why := exposedRoutes(j.then.(*routev3.RouteConfiguration), j.now.(*routev3.RouteConfiguration), filters); why != "" {
		return why
	}
	return j.more(exposed, nil)
}
