package xds

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// cluster builds the cluster of a backend: mutual TLS with the SPIFFE IDs that the service may have, to endpoints that
// come by EDS.
func (s *sender) cluster(b *backend) (*resource, error) {
	limits := s.timeoutsOf(s.timeouts.For(b.key()))
	tls, err := upstreamTLS(b, s.secrets, s.target)
	if err != nil {
		return nil, err
	}
	c := &clusterv3.Cluster{
		Name:                 b.name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: overADS()},
		ConnectTimeout:       durationpb.New(limits.connect),
		CircuitBreakers:      thresholds(nil),
		TransportSocket:      tls,
	}
	if err := spellOut(c, b, s.target.match.Zone); err != nil {
		return nil, err
	}
	if b.http() {
		if c.TypedExtensionProtocolOptions, err = httpOptions(b, &limits); err != nil {
			return nil, err
		}
	}
	if b.prefer != nil || b.egress {
		c.EdsClusterConfig.ServiceName = b.assignment()
	}
	s.breaker(c, b)
	s.balance(c, b)
	s.healthCheck(c, b)
	s.weigh(c, b)
	return newResource(kindCluster, b.name, c)
}

// upstreamTLS asks for the service by its server name, which routes through ingresses, and presents the proxy's own
// identity.
func upstreamTLS(b *backend, secrets secretNames, t *target) (*corev3.TransportSocket, error) {
	context := &tlsv3.UpstreamTlsContext{
		Sni: b.sni(),
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsParams:                      t.observed.tls.params(),
			TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: secrets.identity, SdsConfig: secrets.source()}},
			ValidationContextType: &tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig{
				ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: b.trust(), SdsConfig: overADS()},
			},
		},
	}
	return tlsSocket(b, context)
}

// tlsSocket offers the protocol that the backend speaks.
func tlsSocket(b *backend, context *tlsv3.UpstreamTlsContext) (*corev3.TransportSocket, error) {
	switch {
	case b.http2():
		context.CommonTlsContext.AlpnProtocols = []string{"h2"}
	case b.http():
		context.CommonTlsContext.AlpnProtocols = []string{"http/1.1"}
	}
	packed, err := pack(context)
	if err != nil {
		return nil, err
	}
	return &corev3.TransportSocket{
		Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed},
	}, nil
}

func httpOptions(b *backend, limits *timeouts) (map[string]*anypb.Any, error) {
	explicit := &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &corev3.Http1ProtocolOptions{}},
	}
	if b.http2() {
		explicit.ProtocolConfig = &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}}
	}
	options, err := pack(&upstreamv3.HttpProtocolOptions{
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{
			IdleTimeout: durationpb.New(limits.idle), MaxConnectionDuration: durationOf(limits.maxConnection),
		},
		UpstreamProtocolOptions: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: explicit},
	})
	if err != nil {
		return nil, err
	}
	return map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options}, nil
}
