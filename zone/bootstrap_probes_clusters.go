package zone

import (
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/zone/xds"
)

const (
	// checkEvery is how often the proxy checks a port for a TCP or gRPC probe. No container restarts faster.
	checkEvery = time.Second
	// probeConnectTime bounds how long the application may take to accept a connection.
	probeConnectTime = 5 * time.Second
)

const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// requestCluster adds the cluster for requests to a port of the application, once, and returns its name. Each request
// has its own connection, like the kubelet's.
func (p *prober) requestCluster(port uint32, secure bool) (string, error) {
	name := fmt.Sprintf("causeway_probe_http_%d", port)
	if secure {
		name = fmt.Sprintf("causeway_probe_https_%d", port)
	}
	if p.clusters[name] {
		return name, nil
	}
	options, err := anypb.New(&upstreamv3.HttpProtocolOptions{
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{MaxRequestsPerConnection: wrapperspb.UInt32(1)},
		UpstreamProtocolOptions: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{}}},
	})
	if err != nil {
		return "", err
	}
	c := p.cluster(name, port)
	c.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpOptions: options}
	if secure { // the kubelet does not verify the application's certificate either
		packed, err := anypb.New(&tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{}})
		if err != nil {
			return "", err
		}
		c.TransportSocket = &corev3.TransportSocket{Name: "envoy.transport_sockets.tls",
			ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed}}
	}
	p.b.StaticResources.Clusters = append(p.b.StaticResources.Clusters, c)
	return name, nil
}

// checkedCluster adds the cluster of a port that the proxy checks, and returns its name.
func (p *prober) checkedCluster(probe *injection.Probe) (string, error) {
	name := fmt.Sprintf("causeway_probe_check_%d", len(p.checks))
	c := p.cluster(name, probe.Port)
	check := &corev3.HealthCheck{
		Timeout: durationpb.New(max(time.Duration(probe.Timeout)*time.Second, time.Second)), Interval: durationpb.New(checkEvery),
		NoTrafficInterval: durationpb.New(checkEvery), NoTrafficHealthyInterval: durationpb.New(checkEvery),
		UnhealthyThreshold: wrapperspb.UInt32(1), HealthyThreshold: wrapperspb.UInt32(1), // the kubelet counts failures
		HealthChecker: &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}},
	}
	if probe.GRPC != nil {
		check.HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{
			ServiceName: probe.GRPC.Service}}
		options, err := anypb.New(&upstreamv3.HttpProtocolOptions{
			UpstreamProtocolOptions: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_{
				ExplicitHttpConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig{
					ProtocolConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
						Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}}}}})
		if err != nil {
			return "", err
		}
		c.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpOptions: options}
	}
	c.HealthChecks = []*corev3.HealthCheck{check}
	p.b.StaticResources.Clusters = append(p.b.StaticResources.Clusters, c)
	return name, nil
}

// cluster returns a cluster of a port of the application, dialled as an inbound dials it: the pod's address, from the
// source address that capture lets pass.
func (p *prober) cluster(name string, port uint32) *clusterv3.Cluster {
	p.clusters[name] = true
	c := &clusterv3.Cluster{Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout: durationpb.New(probeConnectTime)}
	at := socketAddress(p.address, port)
	switch {
	case p.loopback:
	case p.six:
		at = socketAddress("127.0.0.1", port)
	default:
		c.UpstreamBindConfig = &corev3.BindConfig{SourceAddress: socketAddress(xds.OwnSource, 0).GetSocketAddress()}
	}
	c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: at}}}}}}}
	return c
}
