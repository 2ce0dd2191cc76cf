package xds

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/zone/rbac"
)

// streamIdleTimeout ends requests on which nothing moved for this long.
const streamIdleTimeout = time.Hour

// connectionManager judges each request first and then hands it to the application. Paths are normalised before they are
// matched, and those that cannot be are refused (envoy-rbac, "Path and method").
func connectionManager(in *inbound) (*hcmv3.HttpConnectionManager, error) {
	deny, err := pack(rbac.DenyAllHTTP())
	if err != nil {
		return nil, err
	}
	router, err := pack(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	return &hcmv3.HttpConnectionManager{
		StatPrefix:                   in.name(),
		AccessLog:                    in.logs,
		CodecType:                    hcmv3.HttpConnectionManager_AUTO,
		NormalizePath:                wrapperspb.Bool(true),
		MergeSlashes:                 true,
		PathWithEscapedSlashesAction: hcmv3.HttpConnectionManager_REJECT_REQUEST,
		ForwardClientCertDetails:     hcmv3.HttpConnectionManager_SANITIZE,
		ServerHeaderTransformation:   hcmv3.HttpConnectionManager_PASS_THROUGH,
		StreamIdleTimeout:            durationpb.New(streamIdleTimeout),
		HttpFilters: []*hcmv3.HttpFilter{
			{Name: in.httpFilter(), ConfigType: &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: discovered(deny)}},
			{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}},
		},
		UpgradeConfigs: []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: toApplication(in)},
	}, nil
}

// toApplication routes everything to the inbound's cluster, without a limit of time of its own.
func toApplication(in *inbound) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name:             in.name(),
		ValidateClusters: wrapperspb.Bool(false),
		VirtualHosts: []*routev3.VirtualHost{{
			Name:    in.name(),
			Domains: []string{"*"},
			Routes: []*routev3.Route{{
				Name:  in.name(),
				Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{
					ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: in.cluster()},
					Timeout:          durationpb.New(0),
				}},
			}},
		}},
	}
}

// discovered is a filter that comes by ECDS. Until it does, deny is in its place.
func discovered(deny *anypb.Any) *corev3.ExtensionConfigSource {
	return &corev3.ExtensionConfigSource{
		ConfigSource:                     overADS(),
		DefaultConfig:                    deny,
		ApplyDefaultConfigWithoutWarming: true,
		TypeUrls:                         []string{deny.TypeUrl},
	}
}
