package xds

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/zone/matching"
)

const (
	// AdminCluster is the cluster in proxies' bootstrap that leads to their own admin interface.
	AdminCluster = "causeway_admin"
	// AdminKey is the key of node.metadata by which a proxy announces that it has that cluster.
	AdminKey = "causeway.io/admin"
	// metricsListener serves a proxy's metrics. It is a listener of its own, so that it replaces no other.
	metricsListener = "causeway_metrics"
)

// basicMetrics matches the metric names of profile Basic.
const basicMetrics = `(_rq_|_cx_|\.rbac\.|^server\.(live|state|uptime|memory)|^listener_manager\.|^cluster_manager\.|^control_plane\.|membership_)`

// measureBy applies a merged MeshMetric.
func (t *target) measureBy(rule matching.ProxyRule) error {
	if len(rule.Conf) == 0 {
		return nil
	}
	origin := rule.Origins[len(rule.Origins)-1].KRI().String()
	var conf resources.MetricConf
	if err := json.Unmarshal(rule.Conf, &conf); err != nil {
		t.observed.problem(origin, "the conf has not the form of its type: "+err.Error())
		return nil
	}
	at := slices.IndexFunc(conf.Backends, func(b resources.MetricBackend) bool { return b.Prometheus != nil })
	if at < 0 {
		return nil // apply and rollout status report that metrics go nowhere else
	}
	backend := conf.Backends[at].Prometheus
	field, err := backend.Check()
	spec, _ := resources.SpecAs[meshpb.Dataplane](t.dataplane)
	listen := endpoint{spec.GetNetworking().GetAddress(), resources.DefaultMetricsPort}
	if backend.Port != nil {
		listen.port = *backend.Port
	}
	taken := slices.ContainsFunc(t.inbounds, func(in inbound) bool { return in.listen == listen }) ||
		t.gateway.listensOn(listen)
	switch {
	case err != nil:
		t.observed.problem(origin, "prometheus."+field+": "+err.Error())
	case !listen.dialable() || taken:
		t.observed.problem(origin, "prometheus.port: nothing can listen on "+listen.String()+", or an inbound or a gateway does")
	case !t.admin:
		t.observed.problem(origin, "the proxy cannot reach its own admin interface: write its bootstrap anew, with an --admin-address that names a port")
	default:
		t.observed.metrics, err = t.newMetrics(listen, backend, conf.Sidecar)
		return err
	}
	return nil
}

// newMetrics builds the listener that serves the proxy's metrics, and nothing else of its admin interface.
func (t *target) newMetrics(listen endpoint, backend *resources.PrometheusBackend,
	sidecar *resources.MetricSidecar) (*resource, error) {
	router, err := pack(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	path := resources.DefaultMetricsPath
	if backend.Path != nil {
		path = *backend.Path
	}
	manager, err := pack(&hcmv3.HttpConnectionManager{
		StatPrefix:    metricsListener,
		NormalizePath: wrapperspb.Bool(true),
		HttpFilters: []*hcmv3.HttpFilter{{Name: "envoy.filters.http.router",
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}}},
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: metricsListener, ValidateClusters: wrapperspb.Bool(false),
			VirtualHosts: []*routev3.VirtualHost{{Name: metricsListener, Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match: &routev3.RouteMatch{
					PathSpecifier: &routev3.RouteMatch_Path{Path: path},
					Headers: []*routev3.HeaderMatcher{{Name: ":method", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
						StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "GET"}},
					}}},
				},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{
					ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: AdminCluster},
					RegexRewrite: &matcherv3.RegexMatchAndSubstitute{
						Pattern: &matcherv3.RegexMatcher{Regex: "^.*$"}, Substitution: strings.ReplaceAll(statsPath(sidecar), `\`, `\\`),
					},
				}},
			}}}},
		}},
	})
	if err != nil {
		return nil, err
	}
	chain := &listenerv3.FilterChain{Name: metricsListener, Filters: []*listenerv3.Filter{{
		Name:       "envoy.filters.network.http_connection_manager",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager},
	}}}
	if backend.TLS != nil && backend.TLS.Mode == resources.MetricsInTheMesh {
		tls, err := pack(downstreamTLS(t, []string{"h2", "http/1.1"}))
		if err != nil {
			return nil, err
		}
		chain.TransportSocket = &corev3.TransportSocket{Name: "envoy.transport_sockets.tls",
			ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: tls}}
	}
	return newResource(kindListener, metricsListener, &listenerv3.Listener{
		Name: metricsListener, StatPrefix: metricsListener, Address: listen.proto(),
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		FilterChains:     []*listenerv3.FilterChain{chain},
	})
}

// statsPath returns the path of the metrics on the admin interface.
func statsPath(sidecar *resources.MetricSidecar) string {
	query := url.Values{}
	var filters []string
	if sidecar == nil || sidecar.IncludeUnused == nil || !*sidecar.IncludeUnused {
		query.Set("usedonly", "")
	}
	if sidecar != nil && sidecar.Regex != nil {
		expr, err := resources.MetricExpression(*sidecar.Regex)
		if err != nil {
			expr = "^$" // only a peer can send it: nothing rather than everything
		}
		filters = append(filters, expr)
	}
	if sidecar != nil && sidecar.Profiles != nil {
		filters = append(filters, profilesFilter(sidecar.Profiles.AppendProfiles)...)
	}
	if len(filters) > 0 && !slices.Contains(filters, "") {
		query.Set("filter", strings.Join(filters, "|"))
	}
	if len(query) == 0 {
		return "/stats/prometheus"
	}
	return "/stats/prometheus?" + query.Encode()
}

// profilesFilter returns expressions of which one matches each metric of the profiles; the empty one matches all.
func profilesFilter(profiles []resources.MetricProfile) (out []string) {
	for _, p := range profiles {
		switch p.Name {
		case resources.ProfileAll:
			return []string{""}
		case resources.ProfileBasic:
			out = append(out, basicMetrics)
		case resources.ProfileNone:
			out = append(out, "^$")
		}
	}
	return out
}
