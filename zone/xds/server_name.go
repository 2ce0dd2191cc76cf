package xds

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// sni returns the server name that clients ask for; ingresses route by it. Source: Kuma's wire format, "SNI of a
// destination port". That of a subset begins with a hash of its tags.
func (b *backend) sni() string {
	if b.tagged != nil {
		return b.taggedSNI()
	}
	k := b.service.KRI
	parts := []string{"", "sni", k.Short, k.Mesh, k.Zone, k.Namespace, k.Name, b.section}
	if len(b.subset) > 0 { // no service has it as its own: those begin with sni
		parts[0] = "subset-" + hashOf(subsetText(b.subset))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ".")
}

// hashedTypes are the types of services in the hashed spelling of server names.
var hashedTypes = map[resources.Type]string{
	resources.TypeMeshService: "ms", resources.TypeMeshMultiZoneService: "mzms",
}

// maxServerNameLabel is the length at which parts of the hashed spelling are cut.
const maxServerNameLabel = 62

// hashedSNI returns the hashed spelling of the server name, which the ingresses and proxies of Kuma's zones use:
// `a<hash>.<name>.<port>.<mesh>.<type>`. It is empty for a subset, which that spelling cannot name. Source: Kuma's wire
// format, "Server names across zones".
func (b *backend) hashedSNI() string {
	t := hashedTypes[b.service.Resource.Type]
	if t == "" || len(b.subset) > 0 {
		return ""
	}
	name, mesh := b.service.KRI.Name, b.mesh()
	if ns := b.service.KRI.Namespace; ns != "" && t == "ms" {
		name += "." + ns
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name + ";" + mesh + ";")) // never fails
	cut := func(s string) string {
		if len(s) > maxServerNameLabel {
			return s[:maxServerNameLabel] + "x"
		}
		return s
	}
	return fmt.Sprintf("a%016x.%s.%d.%s.%s", hash.Sum64(), cut(name), b.number, cut(mesh), t)
}

// asksByHash reports whether an ingress uses the hashed spelling. Kuma's zones list the services of their ingresses;
// Causeway's do not.
func asksByHash(ingress *meshpb.ZoneIngress) bool { return len(ingress.GetAvailableServices()) > 0 }

// Endpoints with this metadata get another server name: the hashed spelling, or the one in the metadata.
const (
	transportSocketMatch = "envoy.transport_socket_match"
	matchServerName      = "server_name"
	hashedSpelling       = "hashed"
)

func serverNameMatch(name string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{matchServerName: structpb.NewStringValue(name)}}
}

func serverNameMetadata(name string) *corev3.Metadata {
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{transportSocketMatch: serverNameMatch(name)}}
}

// spelling returns the hashed spelling of the server name if an endpoint may need it; empty if none does. Services of
// the caller's own zone have no such endpoints.
func (b *backend) spelling(zone string) string {
	if b.tagged != nil || b.service.Resource.Type == resources.TypeMeshService && b.service.Resource.Zone() == zone {
		return ""
	}
	return b.hashedSNI()
}
