package xds

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/causeway-mesh/causeway/resources"
)

// NamespaceKey is the key of node.metadata under which a proxy says its Dataplane's namespace.
const NamespaceKey = "namespace"

// maxNodeID is more than a mesh's and a Dataplane's name together can have.
const maxNodeID = 63 + 1 + 253

// NodeID is the node.id of a Dataplane's proxy, and, with an empty mesh, of a ZoneIngress's.
func NodeID(mesh, name string) string { return mesh + "." + name }

// DataplaneOf returns the key of the Dataplane, or ZoneIngress, that a node says it is the proxy of. Errors wrap ErrNode.
func DataplaneOf(node *corev3.Node) (resources.Key, error) {
	mesh, name, ok := strings.Cut(node.GetId(), ".")
	if !ok || name == "" || len(node.GetId()) > maxNodeID {
		return resources.Key{}, fmt.Errorf("%w: id %.320q: want <mesh>.<dataplane>, or .<zone ingress>", ErrNode, node.GetId())
	}
	if mesh == "" {
		return resources.Key{Type: resources.TypeZoneIngress, Name: name}, nil
	}
	namespace := node.GetMetadata().GetFields()[NamespaceKey].GetStringValue()
	if len(namespace) > 63 {
		return resources.Key{}, fmt.Errorf("%w: metadata.%s is longer than 63 bytes", ErrNode, NamespaceKey)
	}
	return resources.Key{Type: resources.TypeDataplane, Mesh: mesh, Namespace: namespace, Name: name}, nil
}

// grpcAgent begins the user agent of gRPC's own xDS clients, whatever language they are written in.
const grpcAgent = "grpc "

// isGRPC reports whether a node is an application that takes its config by itself, through gRPC.
func isGRPC(node *corev3.Node) bool {
	name := node.GetUserAgentName()
	return len(name) >= len(grpcAgent) && strings.EqualFold(name[:len(grpcAgent)], grpcAgent)
}

// envoyVersion is the proxy's version as it says it, or empty.
func envoyVersion(node *corev3.Node) string {
	if v := node.GetUserAgentBuildVersion().GetVersion(); v != nil {
		return fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
	}
	return strings.Clone(strings.ToValidUTF8(node.GetUserAgentVersion()[:min(len(node.GetUserAgentVersion()), 64)], ""))
}
