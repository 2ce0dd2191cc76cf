package resources

import "fmt"

// Limits of a document. The error for each names the limit.
const (
	// MaxDocumentBytes bounds the body of a request and a file.
	MaxDocumentBytes = 4 << 20
	// MaxDocuments bounds the documents of one body.
	MaxDocuments = 1000
	// MaxDepth bounds how deep objects and lists may nest.
	MaxDepth = 64
	// MaxValues bounds the values (strings, lists, ...) of one body, and with them the memory for reading it.
	MaxValues = 500_000
	// MaxAliasedNodes bounds the values that YAML aliases and merges may add to one body.
	MaxAliasedNodes = 100_000
	// MaxLabels bounds the labels of one resource.
	MaxLabels = 128
	// MaxNameBytes bounds a name: a DNS-1123 subdomain.
	MaxNameBytes = 253
	// MaxShortNameBytes bounds the names of meshes, zones, namespaces and destinations: a DNS label.
	MaxShortNameBytes = 63
	// MaxSpiffeIDBytes bounds a SPIFFE ID (its specification's limit).
	MaxSpiffeIDBytes = 2048
	// MaxInbounds and MaxOutbounds limit one Dataplane. Each inbound or outbound is a listener of its proxy.
	MaxInbounds  = 256
	MaxOutbounds = 4000
	// MaxServicePorts bounds the ports of one service: the proxy of a zone's ingress has a cluster for each.
	MaxServicePorts = 256
	// MaxServiceIdentities bounds the identities of one MeshService: each client's proxy gets all of them for each port.
	MaxServiceIdentities = 1000
	// MaxServiceIdentityBytes bounds their texts, counted once for each port, for the same reason.
	MaxServiceIdentityBytes = 1 << 20
	// MaxPolicyItems bounds `to`, `from` and `rules` of one policy: each proxy that it selects merges all of them, while
	// the changes of others wait.
	MaxPolicyItems = 1000
	// MaxRouteConfBytes bounds a `default` in `to` of a MeshRetry or a MeshLoadBalancingStrategy: a client's proxy has it again
	// in each route to each service.
	MaxRouteConfBytes = 32 << 10
	// MaxZoneTrustBytes bounds the spec of a MeshTrust of a zone, which has its own authorities only: a few, of about 1
	// KiB each.
	MaxZoneTrustBytes = 32 << 10
	// maxProblems bounds how many problems are reported for one body.
	maxProblems = 100
)

// tooManyDocuments returns the reason why a body of more than MaxDocuments is refused, and what to do.
func tooManyDocuments() string {
	return fmt.Sprintf("more than %d documents: apply them in several requests, what is referred to first", MaxDocuments)
}
