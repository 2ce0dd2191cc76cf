package xds

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// listener builds the listener for the application's traffic to a service. HTTP routes are a resource of their own, so
// that policies do not replace the listener, with one exception: the limit on the time that request headers take.
func (s *sender) listener(d *destined) (listener, route *resource, err error) {
	var filter message
	name := "envoy.filters.network.tcp_proxy"
	if d.http() {
		name = "envoy.filters.network.http_connection_manager"
		if filter, err = s.manager(d); err != nil {
			return nil, nil, err
		}
		if route, err = s.routes(d); err != nil {
			return nil, nil, err
		}
	} else {
		filter = s.tcpProxy(d)
	}
	packed, err := pack(filter)
	if err != nil {
		return nil, nil, err
	}
	out := &listenerv3.Listener{
		Name:             d.name,
		StatPrefix:       d.name,
		Address:          d.listen.proto(),
		TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		FilterChains: []*listenerv3.FilterChain{{
			Name: d.name, Filters: []*listenerv3.Filter{{Name: name,
				ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed}}},
		}},
	}
	if d.redirected {
		out.BindToPort = wrapperspb.Bool(false)
	}
	listener, err = newResource(kindListener, d.name, out)
	return listener, route, err
}

func (s *sender) manager(d *destined) (*hcmv3.HttpConnectionManager, error) {
	router, err := pack(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	limits := s.timeoutsOf(s.timeouts.For(d.key()))
	out := &hcmv3.HttpConnectionManager{
		AccessLog:                  s.logsTo(d),
		StatPrefix:                 d.name,
		CodecType:                  hcmv3.HttpConnectionManager_AUTO,
		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,
		StreamIdleTimeout:          durationpb.New(defaultStreamIdleTimeout),
		RequestHeadersTimeout:      durationOf(limits.requestHeaders),
		HttpFilters: []*hcmv3.HttpFilter{
			{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}},
		},
		UpgradeConfigs: []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: overADS(), RouteConfigName: d.name}},
	}
	s.target.observed.trace.onManager(out)
	return out, nil
}

func (s *sender) tcpProxy(d *destined) *tcpv3.TcpProxy {
	limits := s.timeoutsOf(s.timeouts.For(d.key()))
	out := &tcpv3.TcpProxy{
		AccessLog:  s.logsTo(d),
		StatPrefix: d.name, IdleTimeout: durationpb.New(limits.idle),
		MaxConnectAttempts: s.connectAttempts(s.retries.For(d.key())),
		ClusterSpecifier:   &tcpv3.TcpProxy_Cluster{Cluster: d.backend.name},
	}
	sendTo(out, d.tcpRoutes)
	return out
}

// sendTo sets the shares of a listener's connections; without any, they go where they went.
func sendTo(out *tcpv3.TcpProxy, shares []weighted) {
	var clusters []*tcpv3.TcpProxy_WeightedCluster_ClusterWeight
	for _, w := range shares {
		if w.weight > 0 {
			clusters = append(clusters, &tcpv3.TcpProxy_WeightedCluster_ClusterWeight{
				Name: w.name, Weight: max(w.weight>>tooHeavy(shares), 1),
			})
		}
	}
	switch {
	case len(clusters) == 1:
		out.ClusterSpecifier = &tcpv3.TcpProxy_Cluster{Cluster: clusters[0].Name}
	case len(clusters) > 1:
		out.ClusterSpecifier = &tcpv3.TcpProxy_WeightedClusters{WeightedClusters: &tcpv3.TcpProxy_WeightedCluster{Clusters: clusters}}
	case len(shares) > 0:
		out.ClusterSpecifier = &tcpv3.TcpProxy_Cluster{Cluster: lost}
	}
}
