package zone

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/zone/xds"
)

const (
	// readyName names the readiness listener, and readyPath is the path that it answers.
	readyName = "causeway_ready"
	readyPath = "/ready"
	// readyBuffer limits the memory of a connection to it: it accepts no bodies.
	readyBuffer = 8 << 10
)

// addReady adds a listener that answers GET /ready without authentication, like the admin interface: 200 once the proxy
// has its configuration. It exposes nothing else of the admin interface.
func (cfg *BootstrapConfig) addReady(b *bootstrapv3.Bootstrap) error {
	if cfg.ReadyAddress == "" {
		return nil
	}
	host, portText, err := net.SplitHostPort(cfg.ReadyAddress)
	ip, badIP := netip.ParseAddr(host)
	port, badPort := strconv.ParseUint(portText, 10, 16)
	if err != nil || badIP != nil || badPort != nil || port == 0 {
		return fmt.Errorf("ready address %q: want an IP address and a port, such as 0.0.0.0:15021", cfg.ReadyAddress)
	}
	if b.Admin.GetAddress().GetSocketAddress().GetPortValue() == 0 {
		return errors.New("ready address: needs an admin address that has a fixed port")
	}
	manager, err := readyManager()
	if err != nil {
		return err
	}
	address := socketAddress(ip.String(), uint32(port))
	if ip == netip.IPv6Unspecified() {
		address.GetSocketAddress().Ipv4Compat = true
	}
	b.StaticResources.Listeners = append(b.StaticResources.Listeners, &listenerv3.Listener{
		Name: readyName, StatPrefix: readyName, Address: address, TrafficDirection: corev3.TrafficDirection_INBOUND,
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(readyBuffer),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager},
		}}}},
	})
	return nil
}

func readyManager() (*anypb.Any, error) {
	router, err := anypb.New(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	exactly := func(header, value string) *routev3.HeaderMatcher {
		return &routev3.HeaderMatcher{Name: header, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
			StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: value}}}}
	}
	var manager proto.Message = &hcmv3.HttpConnectionManager{
		StatPrefix: readyName, CodecType: hcmv3.HttpConnectionManager_HTTP1,
		RequestTimeout: durationpb.New(defaultReadyTime), RequestHeadersTimeout: durationpb.New(defaultReadyTime),
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{IdleTimeout: durationpb.New(defaultReadyTime)},
		HttpFilters: []*hcmv3.HttpFilter{{Name: "envoy.filters.http.router",
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}}},
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: readyName,
			VirtualHosts: []*routev3.VirtualHost{{Name: readyName, Domains: []string{"*"}, Routes: []*routev3.Route{{
				// :path includes the query, which must not reach the admin interface.
				Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: readyPath},
					Headers: []*routev3.HeaderMatcher{exactly(":method", "GET"), exactly(":path", readyPath)}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{
					ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: xds.AdminCluster},
					Timeout:          durationpb.New(defaultReadyTime)}},
			}}}},
		}},
	}
	return anypb.New(manager)
}
