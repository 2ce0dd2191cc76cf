package resources

import (
	"encoding/pem"
	"slices"
	"strconv"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

func (v *validation) mesh(m *meshpb.Mesh) {
	mtls := m.GetMtls()
	names := map[string]bool{}
	for i, b := range mtls.GetBackends() {
		at := top("mtls").field("backends").item(i)
		v.label(at.field("name"), b.GetName())
		if names[b.GetName()] {
			v.fail(at.field("name"), "%q appears twice", b.GetName())
		}
		names[b.GetName()] = true
		if b.GetType() == "" {
			v.fail(at.field("type"), "is required")
		}
	}
	if enabled := mtls.GetEnabledBackend(); enabled != "" && !names[enabled] {
		v.fail(top("mtls").field("enabledBackend"), "%q is not the name of a backend", shorten(enabled))
	}
}

func (v *validation) meshService(s *MeshService) {
	at := v.specPath()
	if s.State != "" && s.State != "Available" && s.State != "Unavailable" {
		v.fail(at.field("state"), "want Available or Unavailable, got %q", shorten(s.State))
	}
	selectors := 0
	for _, set := range []bool{len(s.Selector.DataplaneTags) > 0, s.Selector.DataplaneRef != nil,
		s.Selector.DataplaneLabels != nil} {
		if set {
			selectors++
		}
	}
	if selectors > 1 {
		v.fail(at.field("selector"), "want at most one of dataplaneTags, dataplaneRef and dataplaneLabels")
	}
	if ref := s.Selector.DataplaneRef; ref != nil && ref.Name == "" {
		v.fail(at.field("selector").field("dataplaneRef").field("name"), "is required")
	}
	if !v.few(len(s.Ports), MaxServicePorts, at.field("ports")) ||
		!v.few(len(s.Identities), MaxServiceIdentities, at.field("identities")) {
		return
	}
	if size := s.IdentityBytes(); size > MaxServiceIdentityBytes {
		v.fail(at.field("identities"), "have %d bytes, counted once for each of the ports, want at most %d: use fewer, or shorter ones",
			size, MaxServiceIdentityBytes)
		return
	}
	taken := map[string]*fieldPath{}
	for i := range s.Ports {
		inside := at.field("ports").item(i)
		v.port(s.Ports[i].Port, inside.field("port"))
		v.portNames(s.Ports[i].Name, s.Ports[i].Port, inside, taken)
		v.targetPort(&s.Ports[i], inside.field("targetPort"))
	}
	for i, id := range s.Identities {
		inside := at.field("identities").item(i)
		switch id.Type {
		case "ServiceTag":
		case "SpiffeID":
			v.serviceIdentity(id.Value, inside.field("value"))
		default:
			v.fail(inside.field("type"), "want ServiceTag or SpiffeID, got %q", shorten(id.Type))
		}
	}
}

// IdentityBytes returns the size of what a client's proxy gets of the identities: all of them, for each port.
func (s *MeshService) IdentityBytes() (size int) {
	for _, id := range s.Identities {
		size += len(id.Value)
	}
	return size * max(len(s.Ports), 1)
}

// serviceIdentity checks that a service does not use an identity of another zone. For paths in the default form, it
// also refuses those of another namespace. Trust domains that the operator configures are checked where identities are
// compared.
func (v *validation) serviceIdentity(value string, at *fieldPath) {
	id, err := spiffeid.FromString(value)
	if err != nil {
		v.fail(at, "%q is not a SPIFFE ID: %v", shorten(value), err)
		return
	}
	domain, own := id.TrustDomain().Name(), v.owner()
	if !strings.HasSuffix(domain, TrustDomainSuffix) || own.IsGlobal() {
		return
	}
	if !IsTrustDomainOf(domain, own.Zone) {
		v.fail(at, "%s is not of zone %s: only workloads of its own zone may answer for a service", shorten(value), own.Zone)
		return
	}
	if ns, under := strings.CutPrefix(id.Path(), "/ns/"); under && !own.IsOperator() &&
		!strings.HasPrefix(ns, own.Namespace+"/") {
		v.fail(at, "%s is not of the namespace %s: only workloads of its own namespace may answer for a service",
			shorten(value), own.Namespace)
	}
}

// portNames checks that port numbers are unique, and names too if ports have them.
func (v *validation) portNames(name string, port uint32, at *fieldPath, taken map[string]*fieldPath) {
	number := strconv.Itoa(int(port))
	v.unique(taken, number, at.field("port"))
	if name != "" && name != number {
		v.label(at.field("name"), name)
		v.unique(taken, name, at.field("name"))
	}
}

// targetPort checks that the target port is a number or the name of an inbound.
func (v *validation) targetPort(p *MeshServicePort, at *fieldPath) {
	if len(p.TargetPort) == 0 {
		return
	}
	raw := string(p.TargetPort)
	if name, err := strconv.Unquote(raw); err == nil {
		v.label(at, name)
		return
	}
	if n, err := strconv.ParseUint(raw, 10, 32); err != nil || n == 0 || n > maxPort {
		v.fail(at, "want 1 to %d or the name of an inbound, got %s", maxPort, shorten(raw))
	}
}

func (v *validation) multiZoneService(s *MeshMultiZoneService) {
	at := v.specPath()
	if len(s.Selector.MeshService.MatchLabels) == 0 {
		v.fail(at.field("selector").field("meshService").field("matchLabels"), "is empty: name at least one label")
	}
	v.multiZoneZones(s, at.field("selector").field("meshService"))
	if len(s.Ports) == 0 {
		v.fail(at.field("ports"), "is empty: give at least one")
	}
	if !v.few(len(s.Ports), MaxServicePorts, at.field("ports")) {
		return
	}
	taken := map[string]*fieldPath{}
	for i := range s.Ports {
		inside := at.field("ports").item(i)
		v.port(s.Ports[i].Port, inside.field("port"))
		v.portNames(s.Ports[i].Name, s.Ports[i].Port, inside, taken)
		v.protocol(s.Ports[i].AppProtocol, inside.field("appProtocol"))
	}
}

// maxMultiZones bounds the zones of a MeshMultiZoneService.
const maxMultiZones = 1000

func (v *validation) multiZoneZones(s *MeshMultiZoneService, at *fieldPath) {
	zones, seen := s.Selector.MeshService.Zones, map[string]bool{}
	if len(zones) > maxMultiZones {
		v.fail(at.field("zones"), "has %d items, more than %d", len(zones), maxMultiZones)
		return
	}
	for i, zone := range zones {
		v.label(at.field("zones").item(i), zone)
		if seen[zone] {
			v.fail(at.field("zones").item(i), "%s appears twice", shorten(zone))
		}
		seen[zone] = true
	}
	if only := s.Selector.MeshService.MatchLabels[LabelZone]; only != "" && len(zones) > 0 && !seen[only] {
		v.fail(at.field("zones"),
			"does not have %s, the only zone that matchLabels allows: nobody could join", shorten(only))
	}
}

func (v *validation) externalService(s *MeshExternalService) {
	at := v.specPath()
	match := at.field("match")
	if s.Match.Type != "" && s.Match.Type != "HostnameGenerator" {
		v.fail(match.field("type"), "want HostnameGenerator, got %q", shorten(s.Match.Type))
	}
	v.port(s.Match.Port, match.field("port"))
	allowed := []string{"", "tcp", "grpc", "http", "http2"}
	if !slices.Contains(allowed, s.Match.Protocol) {
		v.fail(match.field("protocol"), "want one of %s, got %q", strings.Join(allowed[1:], ", "), shorten(s.Match.Protocol))
	}
	for i := range s.Endpoints {
		inside := at.field("endpoints").item(i)
		v.address(s.Endpoints[i].Address, inside.field("address"), false)
		v.port(s.Endpoints[i].Port, inside.field("port"))
	}
}

func (v *validation) trust(t *MeshTrust) {
	at := v.specPath()
	if _, err := spiffeid.TrustDomainFromString(t.TrustDomain); err != nil || strings.Contains(t.TrustDomain, "/") {
		v.fail(at.field("trustDomain"), "%q is not a trust domain: want lower-case letters, digits, '.', '-' and '_'",
			shorten(t.TrustDomain))
	}
	if len(t.CABundles) == 0 {
		v.fail(at.field("caBundles"), "is empty: give at least one")
	}
	if size := len(v.resource.Spec.JSON()); !v.owner().IsGlobal() && size > MaxZoneTrustBytes {
		v.fail(at.field("caBundles"), "has %d bytes, and every proxy of the mesh gets it: want at most %d from a zone", size,
			MaxZoneTrustBytes)
	}
	for i := range t.CABundles {
		inside := at.field("caBundles").item(i)
		if t.CABundles[i].Type != CABundlePEM {
			v.fail(inside.field("type"), "want %s, got %q", CABundlePEM, shorten(t.CABundles[i].Type))
			continue
		}
		if t.CABundles[i].PEM == nil {
			v.fail(inside.field("pem"), "is required")
			continue
		}
		if reason := pemProblem(t.CABundles[i].PEM.Value); reason != "" {
			v.fail(inside.field("pem").field("value"), "%s", reason)
		}
	}
}

// pemProblem returns the reason why text is not a list of PEM certificates, or "".
func pemProblem(text string) string {
	rest := []byte(text)
	for count := 0; ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			switch {
			case count == 0:
				return "holds no certificate in PEM"
			case strings.TrimSpace(string(rest)) != "":
				return "has text after its last certificate"
			}
			return ""
		}
		if block.Type != "CERTIFICATE" {
			return strconv.Quote(shorten(block.Type)) + " does not belong here: only certificates do"
		}
		if _, err := ParseCertificate(block.Bytes); err != nil {
			return "holds a certificate that does not parse: " + err.Error()
		}
	}
}
