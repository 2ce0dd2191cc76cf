package matching

import (
	"fmt"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// ResolvePort returns the port that a route's or an outbound's reference sends traffic to. A reference without a port
// means the service's only port, or else the one that section names; section is empty if nothing suggests a port. If
// there is no such port, or proxies do not send to services of the kind, problem is the reason.
func (x *Destinations) ResolvePort(from Referrer, ref *resources.BackendRef, section string) (target Target,
	problem string) {
	target, problem = x.ResolveBackend(from, ref)
	if problem != "" {
		return Target{}, problem
	}
	d := target.Destination
	if !takesTraffic(d.Resource.Type) {
		return Target{}, fmt.Sprintf("%s: traffic to a %s is not served", d.KRI, d.Resource.Type)
	}
	if problem := unreachable(d); problem != "" {
		return Target{}, problem
	}
	if target.Section != "" {
		return target, ""
	}
	sections := d.Sections()
	if len(sections) == 1 {
		target.Section = sections[0]
		return target, ""
	}
	if same, ok := d.SectionOf(section); ok && section != "" {
		target.Section = same
		return target, ""
	}
	return Target{}, fmt.Sprintf("%s has %d ports: name one", d.KRI, len(sections))
}

// unreachable returns the reason why no proxy can send to a MeshExternalService. It is empty if proxies can, and for
// other services.
func unreachable(d *Destination) string {
	if d.Resource.Type != resources.TypeMeshExternalService {
		return ""
	}
	spec, err := resources.SpecAs[resources.MeshExternalService](d.Resource)
	if err == nil {
		err = spec.Unreachable()
	}
	if err != nil {
		return fmt.Sprintf("%s is not dialled: %v", d.KRI, err)
	}
	return ""
}

// Reachable reports whether proxies can send to a service.
func Reachable(d *Destination) bool { return takesTraffic(d.Resource.Type) && unreachable(d) == "" }

// takesTraffic reports whether proxies get clusters for services of a type.
func takesTraffic(t resources.Type) bool {
	return slices.Contains([]resources.Type{resources.TypeMeshService, resources.TypeMeshMultiZoneService,
		resources.TypeMeshExternalService}, t)
}
