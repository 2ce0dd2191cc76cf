package xds

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/causeway-mesh/causeway/resources"
)

// NamespaceKey is the key of node.metadata that holds the namespace of the proxy's Dataplane.
const NamespaceKey = "namespace"

// maxNodeID is the longest node ID: a mesh's name, a dot and a Dataplane's name.
const maxNodeID = 63 + 1 + 253

// NodeID returns the node.id of a Dataplane's proxy or, with an empty mesh, of a ZoneIngress's.
func NodeID(mesh, name string) string { return mesh + "." + name }

// DataplaneOf returns the key of the Dataplane, or ZoneIngress, whose proxy a node claims to be. Errors wrap ErrNode.
func DataplaneOf(node *corev3.Node) (resources.Key, error) {
	mesh, name, ok := strings.Cut(node.GetId(), ".")
	if !ok || name == "" || len(node.GetId()) > maxNodeID {
		return resources.Key{}, fmt.Errorf("%w: id %.320q: want <mesh>.<dataplane>, or .<zone ingress>", ErrNode,
			node.GetId())
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

// grpcAgent is the prefix of the user agent of gRPC's own xDS clients, in any language.
const grpcAgent = "grpc "

// isGRPC reports whether a node is an application that reads its config itself, through gRPC.
func isGRPC(node *corev3.Node) bool {
	name := node.GetUserAgentName()
	return len(name) >= len(grpcAgent) && strings.EqualFold(name[:len(grpcAgent)], grpcAgent)
}

// envoyVersion returns the version that the proxy claims, or nothing.
func envoyVersion(node *corev3.Node) string {
	if v := node.GetUserAgentBuildVersion().GetVersion(); v != nil {
		return fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
	}
	return strings.Clone(strings.ToValidUTF8(node.GetUserAgentVersion()[:min(len(node.GetUserAgentVersion()), 64)], ""))
}
