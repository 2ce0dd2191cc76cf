package xds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// applicationConnectTimeout limits a connection on the same machine, unless a MeshTimeout sets another limit.
const applicationConnectTimeout = 10 * time.Second

// applicationKey is everything that the cluster of the application behind an inbound depends on.
type applicationKey struct {
	name               string
	service            endpoint
	serverFirst, http2 bool
	ownAddress         bool
	connect            time.Duration
	breaker            *inboundBreaker
}

// behind returns the cluster of the application behind an inbound.
func (t *target) behind(in *inbound) (*resource, error) {
	return t.shared.applications.get(applicationKey{in.cluster(), in.service, in.serverFirst, in.http2(), in.ownAddress,
		in.limits.connectTimeout(), in.breaker}, func() (*resource, error) { return newCluster(in) })
}

// newCluster returns the cluster of the application behind an inbound. If the application speaks first, a connection
// goes to the address that the handshake filter set, and the cluster has no address of its own.
func newCluster(in *inbound) (*resource, error) {
	if in.serverFirst {
		return newResource(kindCluster, in.cluster(), &clusterv3.Cluster{
			Name:                 in.cluster(),
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST},
			LbPolicy:             clusterv3.Cluster_CLUSTER_PROVIDED,
			ConnectTimeout:       durationpb.New(in.limits.connectTimeout()),
			CircuitBreakers:      thresholds(in.breaker.connections()),
			UpstreamBindConfig:   in.source(),
		})
	}
	c := &clusterv3.Cluster{
		Name:                 in.cluster(),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:       durationpb.New(in.limits.connectTimeout()),
		CircuitBreakers:      thresholds(in.breaker.connections()),
		UpstreamBindConfig:   in.source(),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: in.cluster(),
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: in.service.proto()}},
			}}}},
		},
	}
	if in.http2() {
		options, err := pack(&upstreamv3.HttpProtocolOptions{
			UpstreamProtocolOptions: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}},
			}},
		})
		if err != nil {
			return nil, err
		}
		c.TypedExtensionProtocolOptions = map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options}
	}
	return newResource(kindCluster, in.cluster(), c)
}
