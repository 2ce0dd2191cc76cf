package matching

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// WithServices returns a copy of the proxy in which inbounds without a protocol have the one of a MeshService: the
// appProtocol of a port that points to the inbound, of a service in the proxy's own zone and namespace that selects it.
// If services disagree, the one with the smallest KRI wins. WithServices ignores other resources among services. It
// does not change p.
func (p *Proxy) WithServices(services []*resources.Resource) *Proxy {
	out := *p
	out.Inbounds = slices.Clone(p.Inbounds)
	for i := range out.Inbounds {
		in := &out.Inbounds[i]
		if in.AppProtocol == "" {
			in.AppProtocol = serviceProtocol(p, in, services)
			in.Protocol = ProtocolOf(in.AppProtocol)
		}
	}
	return &out
}

func isNeighbour(p *Proxy, r *resources.Resource) bool {
	return r.Type == resources.TypeMeshService && r.Mesh == p.Key.Mesh && r.Zone() == p.Zone &&
		r.HomeNamespace() == p.Namespace
}

// serviceProtocol returns the appProtocol that the neighbour with the smallest KRI has for an inbound, or "".
func serviceProtocol(p *Proxy, in *InboundPort, services []*resources.Resource) (protocol string) {
	smallest := ""
	for _, r := range services {
		if !isNeighbour(p, r) {
			continue
		}
		service, err := resources.SpecAs[resources.MeshService](r)
		if err != nil || !servesInbound(&service.Selector, p, in) {
			continue
		}
		at := slices.IndexFunc(service.Ports, func(port resources.MeshServicePort) bool {
			return port.AppProtocol != "" && pointsTo(&port, in)
		})
		if at < 0 {
			continue
		}
		if kri := resources.KRIOf(r).String(); smallest == "" || kri < smallest {
			smallest, protocol = kri, service.Ports[at].AppProtocol
		}
	}
	return protocol
}

// servesInbound reports whether the selector selects the inbound. An empty selector selects nothing.
func servesInbound(s *resources.MeshServiceSelector, p *Proxy, in *InboundPort) bool {
	switch {
	case s.DataplaneRef != nil:
		return s.DataplaneRef.Name == p.Name
	case s.DataplaneLabels != nil:
		return hasLabels(p, s.DataplaneLabels.MatchLabels)
	case len(s.DataplaneTags) > 0:
		return selectsTags(&resources.TargetRef{Tags: s.DataplaneTags}, p, in.Tags)
	}
	return false
}

// pointsTo reports whether the port's targetPort means the inbound. targetPort is JSON: a port number, or the name of
// an inbound, which may look like a number.
func pointsTo(port *resources.MeshServicePort, in *InboundPort) bool {
	target := string(bytes.TrimSpace(port.TargetPort))
	number := strconv.FormatUint(uint64(in.Port), 10)
	if target == "" || target == "null" {
		return port.Port == in.Port
	}
	if name, quoted := strings.CutPrefix(target, `"`); quoted {
		name = strings.TrimSuffix(name, `"`)
		return name != "" && (name == in.Name || name == number)
	}
	return target == number
}
