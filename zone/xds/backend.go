package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// backend is one port of a service that proxies send to. It is immutable.
type backend struct {
	// name is the port's KRI and the cluster's name, followed by the tags of a subset.
	name string
	// subset holds the tags that the endpoints must have; nil means all endpoints of the service.
	subset  map[string]string
	service *matching.Destination
	// section is the port's name, or its number if it has none.
	section  string
	number   uint32
	protocol string
	// external is the MeshExternalService; nil for services of the mesh.
	external *resources.MeshExternalService
	// egress is set for a service outside the mesh that the proxy reaches through an egress.
	egress bool
	// localOnly is set for an ingress, which sends only to the proxies of its own zone.
	localOnly bool
	// tagged is set for what an outbound names by tags: service is then only a name.
	tagged *matching.Tagged
	// prefer orders the endpoints by the preference of the proxy; nil is the default.
	prefer *preference
}

// newBackend returns the backend of a service's port; ok is false if the service has no such port, or is of a kind that
// proxies do not send to.
func newBackend(service *matching.Destination, section string) (b *backend, ok bool) {
	for _, p := range portsOf(service.Resource) {
		if p.section() == section {
			b := &backend{
				name: service.KRI.WithSection(section).String(), service: service, section: section, number: p.number,
				protocol: p.protocol,
			}
			if service.Resource.Type == resources.TypeMeshExternalService {
				b.external, _ = resources.SpecAs[resources.MeshExternalService](service.Resource)
			}
			return b, true
		}
	}
	return nil, false
}

// of returns the part of the backend whose endpoints have the tags.
func (b *backend) of(subset map[string]string) *backend {
	if len(subset) > 0 {
		b.subset = subset
		b.name += "[" + subsetText(subset) + "]"
	}
	return b
}

// maxSubsetText bounds the tags in the names of clusters.
const maxSubsetText = 256

// plainTag escapes what separates tags, so that no others have the same text.
var plainTag = strings.NewReplacer("%", "%25", ",", "%2C", "=", "%3D")

// subsetText returns the tags for the name of a cluster, or their hash if they are long.
func subsetText(subset map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(subset)) {
		parts = append(parts, plainTag.Replace(key)+"="+plainTag.Replace(subset[key]))
	}
	text := strings.Join(parts, ",")
	if len(text) > maxSubsetText {
		return hashOf(text)
	}
	return text
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// servicePort is a port of a service of any kind.
type servicePort struct {
	name, protocol string
	number         uint32
}

func (p servicePort) section() string {
	if p.name != "" {
		return p.name
	}
	return strconv.FormatUint(uint64(p.number), 10)
}

func portsOf(r *resources.Resource) []servicePort {
	var out []servicePort
	switch r.Type {
	case resources.TypeMeshService:
		if spec, err := resources.SpecAs[resources.MeshService](r); err == nil {
			for i := range spec.Ports {
				out = append(out, servicePort{spec.Ports[i].Name, spec.Ports[i].AppProtocol, spec.Ports[i].Port})
			}
		}
	case resources.TypeMeshMultiZoneService:
		if spec, err := resources.SpecAs[resources.MeshMultiZoneService](r); err == nil {
			for _, p := range spec.Ports {
				out = append(out, servicePort{p.Name, p.AppProtocol, p.Port})
			}
		}
	case resources.TypeMeshExternalService:
		if spec, err := resources.SpecAs[resources.MeshExternalService](r); err == nil {
			out = append(out, servicePort{"", spec.Match.Protocol, spec.Match.Port})
		}
	}
	return out
}

// key returns the port's key in rules.
func (b *backend) key() matching.ResourceKey {
	k := b.service.Key()
	k.Section = b.section
	return k
}

func (b *backend) mesh() string { return b.service.Resource.Mesh }

func (b *backend) http() bool { return matching.ProtocolOf(b.protocol) == matching.HTTP }

// http2 reports whether the service speaks HTTP/2 only.
func (b *backend) http2() bool { return b.protocol == "http2" || b.protocol == "grpc" }

// assignment returns the name under which proxies ask for the endpoints.
func (b *backend) assignment() string {
	switch {
	case b.localOnly:
		return localAssignment(b.name)
	case b.egress:
		return egressMark + b.name
	}
	return b.prefer.assignment(b.name)
}

// localAssignment returns the name of the assignment of an ingress's cluster.
func localAssignment(cluster string) string { return localMark + cluster }

// Marks of the names of assignments.
const (
	localMark  = "local:"
	egressMark = "egress:"
)

// trust returns the name of the secret that holds the SPIFFE IDs of the service.
func (b *backend) trust() string { return identitiesOf(b.name) }

func identitiesOf(cluster string) string { return "identity_of:" + cluster }

// memberPort returns the port of a MeshService that corresponds to this port of a MeshMultiZoneService: the one with
// the same name, or else with the same number.
func (b *backend) memberPort(r *resources.Resource) (section string, ok bool) {
	ports := portsOf(r)
	for _, p := range ports {
		if p.section() == b.section {
			return p.section(), true
		}
	}
	for _, p := range ports {
		if p.number == b.number {
			return p.section(), true
		}
	}
	return "", false
}
