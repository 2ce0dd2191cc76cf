package resources

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// MeshService is a destination made of the proxies of one zone.
type MeshService struct {
	State      string              `json:"state,omitempty"`
	Selector   MeshServiceSelector `json:"selector,omitzero"`
	Ports      []MeshServicePort   `json:"ports,omitempty"`
	Identities []ServiceIdentity   `json:"identities,omitempty"`
}

// MeshServiceSelector selects Dataplanes by at most one of its fields.
type MeshServiceSelector struct {
	DataplaneTags   map[string]string `json:"dataplaneTags,omitempty"`
	DataplaneRef    *DataplaneRef     `json:"dataplaneRef,omitempty"`
	DataplaneLabels *LabelSelector    `json:"dataplaneLabels,omitempty"`
}

// DataplaneRef names one Dataplane.
type DataplaneRef struct {
	Name string `json:"name"`
}

// LabelSelector matches resources that carry all of the labels.
type LabelSelector struct {
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// MeshServicePort is a port of a MeshService. TargetPort is a number or the name of an inbound. If it is absent, it
// equals Port.
type MeshServicePort struct {
	Name        string          `json:"name,omitempty"`
	Port        uint32          `json:"port"`
	TargetPort  json.RawMessage `json:"targetPort,omitempty" shape:"intOrString"`
	AppProtocol string          `json:"appProtocol,omitempty"`
}

// ServiceIdentity is an identity that the certificate of a destination may have. Type is ServiceTag or SpiffeID.
type ServiceIdentity struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// MeshMultiZoneService is a destination made of MeshServices of several zones.
type MeshMultiZoneService struct {
	Selector MultiZoneSelector `json:"selector"`
	Ports    []MultiZonePort   `json:"ports"`
}

// MultiZoneSelector selects MeshServices.
type MultiZoneSelector struct {
	MeshService MultiZoneMatch `json:"meshService"`
}

// MultiZoneMatch matches MeshServices that carry all of the labels. The owners of MeshServices choose the labels, so
// any zone can join. If Zones is not empty, only the zones that it lists can.
type MultiZoneMatch struct {
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	Zones       []string          `json:"zones,omitempty"`
}

// Selects reports whether service is one of the MeshServices behind s.
func (s *MeshMultiZoneService) Selects(service *Resource) bool {
	match := &s.Selector.MeshService
	if len(match.MatchLabels) == 0 || len(match.Zones) > 0 && !slices.Contains(match.Zones, service.Zone()) {
		return false
	}
	for k, v := range match.MatchLabels {
		if got, ok := service.Labels[k]; !ok || got != v {
			return false
		}
	}
	return service.Type == TypeMeshService
}

// MultiZonePort is a port of a MeshMultiZoneService.
type MultiZonePort struct {
	Name        string `json:"name,omitempty"`
	Port        uint32 `json:"port"`
	AppProtocol string `json:"appProtocol,omitempty"`
}

// MeshExternalService is a destination outside the mesh.
type MeshExternalService struct {
	Match     ExternalMatch      `json:"match"`
	Extension json.RawMessage    `json:"extension,omitempty" shape:"object"`
	Endpoints []ExternalEndpoint `json:"endpoints,omitempty"`
	TLS       json.RawMessage    `json:"tls,omitempty" shape:"object"`
}

// ExternalMatch is the traffic that a MeshExternalService accepts.
type ExternalMatch struct {
	Type     string `json:"type,omitempty"`
	Port     uint32 `json:"port"`
	Protocol string `json:"protocol,omitempty"`
}

// ExternalEndpoint is an address outside the mesh.
type ExternalEndpoint struct {
	Address  string  `json:"address"`
	Port     uint32  `json:"port"`
	Priority *uint32 `json:"priority,omitempty"`
}

// MeshTrust is the bundle of certificate authorities by which proxies verify peers of one trust domain.
type MeshTrust struct {
	Origin      json.RawMessage `json:"origin,omitempty" shape:"object"`
	TrustDomain string          `json:"trustDomain"`
	CABundles   []CABundle      `json:"caBundles"`
}

// ZoneTrustName returns the name of the MeshTrust that a zone publishes in each of its meshes, as long as the mesh
// exists.
func ZoneTrustName(zone string) string { return "identity-" + zone }

var otherDomain = regexp.MustCompile(`^-[0-9a-f]{8}$`)

// IsZoneTrustName reports whether a zone may publish a MeshTrust by that name: ZoneTrustName, or ZoneTrustName with a
// suffix for the trust domain if a MeshIdentity names another one than the zone's own.
func IsZoneTrustName(name, zone string) bool {
	rest, ok := strings.CutPrefix(name, ZoneTrustName(zone))
	return ok && (rest == "" || otherDomain.MatchString(rest))
}

// CABundle is a set of CA certificates. Type is always CABundlePEM.
type CABundle struct {
	Type string  `json:"type"`
	PEM  *PEMRef `json:"pem,omitempty"`
}

// CABundlePEM is the only type of CABundle.
const CABundlePEM = "Pem"

// PEMRef holds certificates as PEM text.
type PEMRef struct {
	Value string `json:"value"`
}
