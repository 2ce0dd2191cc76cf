package rbac_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	typeurls "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	xdscredentials "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// liveGRPC is a running grpc-go server with xDS, and the connections to it by identity.
type liveGRPC struct {
	ca          *authority
	address     string
	connections map[string]*grpc.ClientConn
}

func startGRPC(t *testing.T, sets []matching.Rules) *liveGRPC {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	g := &liveGRPC{ca: newAuthority(t), address: listener.Addr().String(), connections: map[string]*grpc.ClientConn{}}
	bootstrap := g.bootstrap(t, startXDS(t, grpcListener(t, listener.Addr().(*net.TCPAddr)), grpcRoutes(t, sets)))
	fromXDS, err := xdscredentials.NewServerCredentials(
		xdscredentials.ServerOptions{FallbackCreds: insecure.NewCredentials()})
	ok(t, err)
	serving := make(chan error, 10)
	srv, err := xds.NewGRPCServer(grpc.Creds(fromXDS), xds.BootstrapContentsForTesting(bootstrap),
		xds.ServingModeCallback(func(_ net.Addr, change xds.ServingModeChangeArgs) {
			if change.Mode == connectivity.ServingModeServing || change.Err != nil {
				serving <- change.Err
			}
		}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
				return err
			}
			return stream.SendMsg(&emptypb.Empty{})
		}))
	ok(t, err)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(listener) }()
	t.Cleanup(func() {
		for _, c := range g.connections {
			ok(t, c.Close())
		}
		srv.Stop()
		ok(t, <-done)
	})
	select {
	case err := <-serving:
		ok(t, err)
	case <-time.After(time.Minute):
		t.Fatal("grpc-go does not serve: it has refused its config")
	}
	return g
}

func (g *liveGRPC) bootstrap(t *testing.T, xdsAddress string) []byte {
	t.Helper()
	dir := t.TempDir()
	certificate := g.ca.issue(t, "spiffe://a/server")
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	ok(t, err)
	files := object{}
	for field, block := range map[string]*pem.Block{
		"certificate_file":    {Type: "CERTIFICATE", Bytes: certificate.Certificate[0]},
		"private_key_file":    {Type: "PRIVATE KEY", Bytes: key},
		"ca_certificate_file": {Type: "CERTIFICATE", Bytes: g.ca.certificate.Raw},
	} {
		files[field] = filepath.Join(dir, field)
		ok(t, os.WriteFile(filepath.Join(dir, field), pem.EncodeToMemory(block), 0o600))
	}
	return []byte(asJSON(t, object{
		"xds_servers": []any{object{"server_uri": xdsAddress,
			"channel_creds": []any{object{"type": "insecure"}}}},
		"node":                                   object{"id": "node"},
		"certificate_providers":                  object{"files": object{"plugin_name": "file_watcher", "config": files}},
		"server_listener_resource_name_template": "%s",
	}))
}

// startXDS serves one listener and one route configuration.
func startXDS(t *testing.T, listener, routes types.Resource) (address string) {
	t.Helper()
	snapshot, err := cache.NewSnapshot("1", map[typeurls.Type][]types.Resource{typeurls.ListenerType: {listener},
		typeurls.RouteType: {routes}})
	ok(t, err)
	snapshots := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	ok(t, snapshots.SetSnapshot(t.Context(), "node", snapshot))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	srv := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(srv, &ads{server: sotw.NewServer(t.Context(), snapshots, nil)})
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Stop()
		ok(t, <-done)
	})
	return l.Addr().String()
}

// ads serves state-of-the-world ADS.
type ads struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer

	server sotw.Server
}

func (a *ads) StreamAggregatedResources(
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return a.server.StreamHandler(stream, typeurls.AnyType)
}

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	out, err := anypb.New(m)
	ok(t, err)
	return out
}

func grpcListener(t *testing.T, address *net.TCPAddr) *listenerv3.Listener {
	provider := &tlsv3.CertificateProviderPluginInstance{InstanceName: "files"}
	manager := &hcmv3.HttpConnectionManager{
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
			RouteConfigName: "routes", ConfigSource: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}},
		}},
	}
	for name, config := range map[string]proto.Message{"deny": rbac.DenyAllClassic(), "allow": rbac.DenyAllClassic()} {
		manager.HttpFilters = append(manager.HttpFilters,
			&hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(t, config)}})
	}
	manager.HttpFilters = append(manager.HttpFilters, &hcmv3.HttpFilter{Name: "router",
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(t, &routerv3.Router{})}})
	return &listenerv3.Listener{
		Name: address.String(),
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: address.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(address.Port)},
		}}},
		FilterChains: []*listenerv3.FilterChain{{
			Filters: []*listenerv3.Filter{{Name: "manager",
				ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(t, manager)}}},
			TransportSocket: &corev3.TransportSocket{
				Name: "envoy.transport_sockets.tls",
				ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(t, &tlsv3.DownstreamTlsContext{
					RequireClientCertificate: wrapperspb.Bool(true),
					CommonTlsContext: &tlsv3.CommonTlsContext{
						TlsCertificateProviderInstance: provider,
						ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{
							ValidationContext: &tlsv3.CertificateValidationContext{CaCertificateProviderInstance: provider},
						},
					},
				})},
			},
		}},
	}
}

// grpcRoutes returns one route for each set of rules. The route matches the set's number in the header x-set.
func grpcRoutes(t *testing.T, sets []matching.Rules) *routev3.RouteConfiguration {
	host := &routev3.VirtualHost{Name: "all", Domains: []string{"*"}}
	for i, rules := range sets {
		c := rbac.ClassicFilters(rules)
		host.Routes = append(host.Routes, &routev3.Route{
			Match: &routev3.RouteMatch{
				PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""},
				Headers: []*routev3.HeaderMatcher{{Name: "x-set",
					HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
						MatchPattern: &matcherv3.StringMatcher_Exact{Exact: strconv.Itoa(i)},
					}}}},
			},
			Action: &routev3.Route_NonForwardingAction{NonForwardingAction: &routev3.NonForwardingAction{}},
			TypedPerFilterConfig: map[string]*anypb.Any{
				"deny": packed(t, &httprbac.RBACPerRoute{Rbac: c.Deny}), "allow": packed(t, &httprbac.RBACPerRoute{Rbac: c.Allow}),
			},
		})
	}
	host.Routes = append(host.Routes, &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""}},
		Action: &routev3.Route_NonForwardingAction{NonForwardingAction: &routev3.NonForwardingAction{}},
	})
	return &routev3.RouteConfiguration{Name: "routes", VirtualHosts: []*routev3.VirtualHost{host}}
}

func (g *liveGRPC) connection(t *testing.T, identities []string) *grpc.ClientConn {
	t.Helper()
	id := strings.Join(identities, " ")
	if g.connections[id] == nil {
		config := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{g.ca.issue(t, identities...)}}
		conn, err := grpc.NewClient(g.address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
		ok(t, err)
		g.connections[id] = conn
	}
	return g.connections[id]
}

func (g *liveGRPC) allows(t *testing.T, set int, req *rbac.Request) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-set", fmt.Sprint(set))
	for name, value := range req.Headers {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	err := g.connection(t, req.URISANs).Invoke(ctx, req.Path, &emptypb.Empty{}, &emptypb.Empty{})
	if code := status.Code(err); code != codes.OK && code != codes.PermissionDenied {
		t.Errorf("set %d: %+v: %v", set, req, err)
	}
	return err == nil
}
