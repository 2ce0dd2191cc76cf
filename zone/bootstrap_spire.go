package zone

import (
	"fmt"
	"path"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/causeway-mesh/causeway/zone/xds"
)

// maxSocketPath is the kernel's limit for the path of a socket, in bytes.
const maxSocketPath = 107

// spireCluster returns the cluster of the SPIRE agent beside the proxy. It is in the bootstrap because Envoy requests
// secrets only from static clusters, and because only the proxy's machine knows where the socket is.
func spireCluster(socket string) (*clusterv3.Cluster, error) {
	if !path.IsAbs(socket) || len(socket) > maxSocketPath {
		return nil, fmt.Errorf("spire socket %q: want an absolute path of at most %d bytes", socket, maxSocketPath)
	}
	http2, err := anypb.New(&upstreamv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}},
		}},
	})
	if err != nil {
		return nil, err
	}
	return &clusterv3.Cluster{
		Name:                          xds.SpireCluster,
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:                durationpb.New(time.Second),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2},
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: xds.SpireCluster,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
					Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: socket}}},
				}},
			}}}},
		},
	}, nil
}
