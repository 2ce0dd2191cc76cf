package proxypatch

import (
	"fmt"
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Fields of exposed resources that an ordinary patch may change. All other fields stay unchanged.
var (
	chainFields   = []string{"filters", "transport_socket_connect_timeout"}
	tcpFields     = []string{"idle_timeout", "max_connect_attempts", "max_downstream_connection_duration", "backoff_options"}
	managerFields = []string{
		"http_filters", "stat_prefix", "common_http_protocol_options", "http2_protocol_options", "server_name",
		"server_header_transformation", "max_request_headers_kb", "stream_idle_timeout", "stream_flush_timeout",
		"request_timeout", "request_headers_timeout", "drain_timeout", "delayed_close_timeout", "generate_request_id",
		"preserve_external_request_id", "always_set_request_id_in_response", "add_user_agent", "proxy_status_config", "via",
	}
	routesFields = []string{"virtual_hosts", "response_headers_to_add", "response_headers_to_remove"}
	hostFields   = []string{
		"name", "routes", "response_headers_to_add", "response_headers_to_remove", "typed_per_filter_config",
		"include_request_attempt_count", "include_attempt_count_in_response", "retry_policy",
	}
	routeFields = []string{
		"name", "route", "response_headers_to_add", "response_headers_to_remove", "typed_per_filter_config", "tracing",
		"decorator", "per_request_buffer_limit_bytes", "stat_prefix",
	}
	actionFields = []string{"timeout", "idle_timeout", "max_stream_duration", "retry_policy", "hash_policy", "priority"}
)

// differs returns the first field, other than those in may, in which two messages of one type differ, or "".
func differs(before, after proto.Message, may ...string) string {
	a, b := before.ProtoReflect(), after.ProtoReflect()
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if slices.Contains(may, string(fd.Name())) {
			continue
		}
		if a.Has(fd) != b.Has(fd) || a.Has(fd) && !a.Get(fd).Equal(b.Get(fd)) {
			return string(fd.Name())
		}
	}
	if len(a.GetUnknown())+len(b.GetUnknown()) > 0 {
		return "unknown fields"
	}
	return ""
}

// exposedListener returns why an ordinary patch may not change an exposed listener, or "".
func exposedListener(before, after *listenerv3.Listener) string {
	if field := differs(before, after, append([]string{"filter_chains"}, listenerFields...)...); field != "" {
		return "would change its " + field
	}
	if len(before.GetFilterChains()) != len(after.GetFilterChains()) {
		return "would have other filter chains"
	}
	for i, then := range before.GetFilterChains() {
		now := after.GetFilterChains()[i]
		if field := differs(then, now, chainFields...); field != "" {
			return fmt.Sprintf("would change the %s of its filter chain %s", field, then.GetName())
		}
		if why := keeps(then.GetFilters(), now.GetFilters(), false, sameFilter); why != "" {
			return why
		}
	}
	return ""
}

// keeps returns why a list of filters does not keep those of another, or "": all of them must remain, in their order.
// same compares one with its successor. With first, nothing may be added before the last filter that comes by
// discovery: those are the permissions.
func keeps[F filter](before, after []F, first bool, same func(before, after F) string) string {
	judge := -1
	for i, f := range before {
		if discovers(f) {
			judge = i
		}
	}
	next := 0
	for i, f := range before {
		found := -1
		for j := next; j < len(after) && found < 0; j++ {
			if after[j].GetName() == f.GetName() {
				found = j
			}
		}
		switch {
		case found < 0:
			return fmt.Sprintf("would lose its filter %s, or have it in another order", f.GetName())
		case first && i <= judge && found != i:
			return fmt.Sprintf("would have filters before %s, which judges requests", f.GetName())
		}
		if why := same(f, after[found]); why != "" {
			return why
		}
		next = found + 1
	}
	if next != len(after) {
		return "would have a filter behind the one that ends the chain"
	}
	return ""
}

// discovers reports whether a filter comes by extension discovery.
func discovers(f any) bool {
	switch v := f.(type) {
	case *listenerv3.Filter:
		return v.GetConfigDiscovery() != nil
	case *hcmv3.HttpFilter:
		return v.GetConfigDiscovery() != nil
	}
	return false
}

// sameFilter returns why a network filter may not become another one.
func sameFilter(before, after *listenerv3.Filter) string {
	if proto.Equal(before, after) {
		return ""
	}
	changed := fmt.Sprintf("would change its filter %s", before.GetName())
	then, err := open(before.GetTypedConfig())
	if err != nil {
		return changed
	}
	now, err := open(after.GetTypedConfig())
	if err != nil || then.ProtoReflect().Descriptor() != now.ProtoReflect().Descriptor() {
		return changed
	}
	field := "config"
	switch manager := now.(type) {
	case *tcpv3.TcpProxy:
		field = differs(then, now, tcpFields...)
	case *hcmv3.HttpConnectionManager:
		was := then.(*hcmv3.HttpConnectionManager)
		if field = differs(was, manager, managerFields...); field == "" {
			return keeps(was.GetHttpFilters(), manager.GetHttpFilters(), true, sameHTTPFilter)
		}
	}
	if field != "" {
		return changed + ": its " + field
	}
	return ""
}

// sameHTTPFilter returns why an HTTP filter may not become another one. The proxy's own filters stay.
func sameHTTPFilter(before, after *hcmv3.HttpFilter) string {
	if !proto.Equal(before, after) {
		return fmt.Sprintf("would change its HTTP filter %s", before.GetName())
	}
	return ""
}

// exposedRoutes returns why an ordinary patch may not change exposed routes, or "". judges are the filters that no
// route may turn off.
func exposedRoutes(before, after *routev3.RouteConfiguration, judges map[string]bool) string {
	if field := differs(before, after, routesFields...); field != "" {
		return "would change its " + field
	}
	if len(before.GetVirtualHosts()) != len(after.GetVirtualHosts()) {
		return "would have other virtual hosts"
	}
	for i, then := range before.GetVirtualHosts() {
		now := after.GetVirtualHosts()[i]
		if field := differs(then, now, hostFields...); field != "" {
			return fmt.Sprintf("would change the %s of its virtual host %s", field, then.GetName())
		}
		if why := sameJudges(then.GetTypedPerFilterConfig(), now.GetTypedPerFilterConfig(), judges); why != "" {
			return why
		}
		if len(then.GetRoutes()) != len(now.GetRoutes()) {
			return "would have other routes"
		}
		for j, was := range then.GetRoutes() {
			if why := sameRoute(was, now.GetRoutes()[j], judges); why != "" {
				return why
			}
		}
	}
	return ""
}

func sameRoute(before, after *routev3.Route, judges map[string]bool) string {
	if field := differs(before, after, routeFields...); field != "" {
		return fmt.Sprintf("would change the %s of its route %s", field, before.GetName())
	}
	if why := sameJudges(before.GetTypedPerFilterConfig(), after.GetTypedPerFilterConfig(), judges); why != "" {
		return why
	}
	if (before.GetRoute() == nil) != (after.GetRoute() == nil) {
		return fmt.Sprintf("would change the action of its route %s", before.GetName())
	}
	if before.GetRoute() == nil {
		return ""
	}
	if field := differs(before.GetRoute(), after.GetRoute(), actionFields...); field != "" {
		return fmt.Sprintf("would change the %s of its route %s", field, before.GetName())
	}
	return ""
}

// sameJudges returns why two maps do not agree on the filters that judge, or "".
func sameJudges(before, after map[string]*anypb.Any, judges map[string]bool) string {
	for _, name := range slices.Sorted(maps.Keys(judges)) {
		if !proto.Equal(before[name], after[name]) {
			return fmt.Sprintf("would change how its permissions judge, or what an operator closes: the filter %s", name)
		}
	}
	return ""
}

// optionFields are the fields of a cluster's HTTP options that an ordinary patch may change. All others, such as
// filters and mirrors, change or copy requests that were already judged.
var optionFields = []string{
	"common_http_protocol_options", "upstream_http_protocol_options", "explicit_http_config",
	"use_downstream_protocol_config", "auto_config", "header_validation_config", "outlier_detection", "hash_policy",
	"retry_policy",
}

// changedOption returns the first field in which the HTTP options of two clusters differ and may not, or "".
func changedOption(before, after *clusterv3.Cluster) string {
	was, is := before.GetTypedExtensionProtocolOptions(), after.GetTypedExtensionProtocolOptions()
	keys := maps.Clone(was)
	if keys == nil {
		keys = map[string]*anypb.Any{}
	}
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if proto.Equal(was[key], is[key]) {
			continue
		}
		then, now := &upstreamv3.HttpProtocolOptions{}, &upstreamv3.HttpProtocolOptions{}
		if was[key] != nil && was[key].UnmarshalTo(then) != nil || is[key] != nil && is[key].UnmarshalTo(now) != nil {
			return key
		}
		if field := differs(then, now, optionFields...); field != "" {
			return field
		}
	}
	return ""
}
