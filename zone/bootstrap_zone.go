package zone

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/zone/xds"
)

var errNoXDSCA = errors.New("xds CA: required with TLS: the zone keeps it in <data-dir>/tls/ca.crt")

// mostBackOff is the longest pause between two attempts to reach the zone. Where replicas stand in for each other, proxies
// find the next one within seconds; an attempt that is refused costs both sides little.
const mostBackOff = time.Second

func dynamicResources() *bootstrapv3.Bootstrap_DynamicResources {
	// Without a timeout, a proxy is not ready before it has its configuration, however long its zone takes.
	overADS := func() *corev3.ConfigSource {
		return &corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3, InitialFetchTimeout: durationpb.New(0),
			ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
	}
	return &bootstrapv3.Bootstrap_DynamicResources{
		CdsConfig: overADS(),
		LdsConfig: overADS(),
		AdsConfig: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_DELTA_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
			SetNodeOnFirstMessageOnly: true,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
				ClusterName: xds.ServerCluster,
				RetryPolicy: &corev3.RetryPolicy{RetryBackOff: &corev3.BackoffStrategy{
					BaseInterval: durationpb.New(500 * time.Millisecond), MaxInterval: durationpb.New(mostBackOff),
				}},
			}}}},
		},
	}
}

// zoneCluster returns the cluster of the zone's xDS server.
func zoneCluster(cfg *BootstrapConfig) (*clusterv3.Cluster, error) {
	host, port, secure, err := xdsAddress(cfg.XDSAddress)
	if err != nil {
		return nil, fmt.Errorf("xds address %q: %w", cfg.XDSAddress, err)
	}
	filters, err := tokenFilters(cfg)
	if err != nil {
		return nil, err
	}
	http2, err := anypb.New(&upstreamv3.HttpProtocolOptions{
		HttpFilters: filters,
		UpstreamProtocolOptions: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
				ConnectionKeepalive: &corev3.KeepaliveSettings{Interval: durationpb.New(30 * time.Second),
					Timeout: durationpb.New(10 * time.Second)},
			}},
		}},
	})
	if err != nil {
		return nil, err
	}
	c := &clusterv3.Cluster{
		Name:                          xds.ServerCluster,
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS},
		ConnectTimeout:                durationpb.New(5 * time.Second),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2},
		UpstreamConnectionOptions: &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{
			KeepaliveProbes: wrapperspb.UInt32(3), KeepaliveTime: wrapperspb.UInt32(30),
			KeepaliveInterval: wrapperspb.UInt32(10),
		}},
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: xds.ServerCluster,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socketAddress(host, port)}},
			}}}},
		},
	}
	if _, err := netip.ParseAddr(host); err == nil {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
	}
	if secure {
		c.TransportSocket, err = upstreamTLS(cfg.XDSCA, host)
	}
	return c, err
}

// xdsAddress parses XDSAddress.
func xdsAddress(address string) (host string, port uint32, secure bool, err error) {
	rest, plain := strings.CutPrefix(address, "grpc://")
	rest, secure = strings.CutPrefix(rest, "grpcs://")
	host, portText, err := net.SplitHostPort(rest)
	if err != nil {
		return "", 0, false, fmt.Errorf("want host:port, grpcs://host:port or grpc://host:port: %w", err)
	}
	n, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || n == 0 || host == "" {
		return "", 0, false, fmt.Errorf("want a host and a port from 1 to 65535")
	}
	loopback := isLoopbackHost(host)
	if plain && !loopback {
		return "", 0, false, fmt.Errorf("plaintext is for loopback only: use grpcs://")
	}
	return host, uint32(n), secure || !loopback, nil
}

func isLoopbackHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// upstreamTLS verifies that the server has a certificate of the CA for the dialled host.
func upstreamTLS(ca, host string) (*corev3.TransportSocket, error) {
	if ca == "" {
		return nil, errNoXDSCA
	}
	pem := []byte(ca)
	if !strings.HasPrefix(strings.TrimSpace(ca), "-----BEGIN") {
		var err error
		if pem, err = credential.Public("--xds-ca", ca); err != nil {
			return nil, err
		}
	}
	kind, sni := tlsv3.SubjectAltNameMatcher_DNS, host
	if _, err := netip.ParseAddr(host); err == nil {
		kind, sni = tlsv3.SubjectAltNameMatcher_IP_ADDRESS, ""
	}
	context, err := anypb.New(&tlsv3.UpstreamTlsContext{
		Sni: sni,
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsParams: &tlsv3.TlsParameters{
				TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
			},
			AlpnProtocols: []string{"h2"},
			ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
				TrustedCa: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: string(pem)}},
				MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
					SanType: kind, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: host}},
				}},
			}},
		},
	})
	if err != nil {
		return nil, err
	}
	return &corev3.TransportSocket{Name: "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: context}}, nil
}
