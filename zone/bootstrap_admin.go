package zone

import (
	"fmt"
	"net"
	"strconv"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/causeway-mesh/causeway/zone/xds"
)

// adminCluster returns the cluster of the proxy's own admin interface, whose metrics a MeshMetric exposes.
func adminCluster(address *corev3.Address) *clusterv3.Cluster {
	discovery := clusterv3.Cluster_STRICT_DNS
	if net.ParseIP(address.GetSocketAddress().GetAddress()) != nil {
		discovery = clusterv3.Cluster_STATIC
	}
	return &clusterv3.Cluster{
		Name: xds.AdminCluster, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: discovery},
		ConnectTimeout: durationpb.New(5 * time.Second),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: xds.AdminCluster,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address}},
			}}}},
		},
	}
}

func loopbackAddress(address string) (*corev3.Address, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q: want a port from 0 to 65535", portText)
	}
	if !isLoopbackHost(host) {
		return nil, fmt.Errorf("%q: it has no access control, so it must be on loopback", host)
	}
	return socketAddress(host, uint32(port)), nil
}

func socketAddress(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}
