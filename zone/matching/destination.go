package matching

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
)

// Destination is one resource that an item of `to` can mean. Callers may keep it until the resource's revision changes.
// It is immutable.
type Destination struct {
	Resource *resources.Resource
	KRI      resources.KRI
	// HashedName is the resource's name on servers that hold a copy of it.
	HashedName string

	zone, namespace string
	ports           []port
	// parentRefs are the references in a route's `to`; nil for services.
	parentRefs []resources.TargetRef
}

// port is a section of a service.
type port struct {
	name   string
	number uint32
}

func (p port) section() string {
	if p.name != "" {
		return p.name
	}
	return strconv.FormatUint(uint64(p.number), 10)
}

// IsDestination reports whether `to` may refer to resources of the type.
func IsDestination(t resources.Type) bool {
	switch t {
	case resources.TypeMeshService, resources.TypeMeshMultiZoneService, resources.TypeMeshExternalService,
		resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute:
		return true
	}
	return false
}

// NewDestination reads a resource. It fails if r has another type or its spec does not decode.
func NewDestination(r *resources.Resource) (*Destination, error) {
	d := &Destination{Resource: r, KRI: resources.KRIOf(r), zone: r.Zone(), namespace: r.HomeNamespace()}
	d.HashedName = hashing.Name(r.Mesh, r.DisplayName(), d.zone, d.namespace)
	switch r.Type {
	case resources.TypeMeshService:
		return d, d.readService()
	case resources.TypeMeshMultiZoneService:
		return d, d.readMultiZone()
	case resources.TypeMeshExternalService:
		return d, d.readExternal()
	case resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute:
		return d, d.readRoute()
	}
	return nil, fmt.Errorf("%s is not a destination: only services and routes are", r.Key)
}

func (d *Destination) readService() error {
	spec, err := resources.SpecAs[resources.MeshService](d.Resource)
	if err != nil {
		return err
	}
	for _, p := range spec.Ports {
		d.ports = append(d.ports, port{p.Name, p.Port})
	}
	return nil
}

func (d *Destination) readMultiZone() error {
	spec, err := resources.SpecAs[resources.MeshMultiZoneService](d.Resource)
	if err != nil {
		return err
	}
	for _, p := range spec.Ports {
		d.ports = append(d.ports, port{p.Name, p.Port})
	}
	return nil
}

func (d *Destination) readExternal() error {
	spec, err := resources.SpecAs[resources.MeshExternalService](d.Resource)
	if err != nil {
		return err
	}
	d.ports = []port{{number: spec.Match.Port}}
	return nil
}

func (d *Destination) readRoute() error {
	spec, err := resources.SpecAs[resources.Policy](d.Resource)
	if err != nil {
		return err
	}
	for i := range spec.To {
		d.parentRefs = append(d.parentRefs, spec.To[i].TargetRef)
	}
	return nil
}

// IsStill reports whether references mean r, a later version of a route, exactly where they mean d, and whether it is
// for the same services. It then needs no new Destinations.
func (d *Destination) IsStill(r *resources.Resource) bool {
	if !isRouteType(r.Type) || d.Resource.Key != r.Key || !maps.Equal(d.Resource.Labels, r.Labels) {
		return false
	}
	spec, err := resources.SpecAs[resources.Policy](r)
	return err == nil && slices.EqualFunc(d.parentRefs, spec.To,
		func(ref resources.TargetRef, to resources.PolicyTo) bool { return reflect.DeepEqual(ref, to.TargetRef) })
}

// meansAs reports whether references mean a later version of a service outside the mesh exactly where they mean d.
func (d *Destination) meansAs(o *Destination) bool {
	return d.Resource.Type == resources.TypeMeshExternalService && d.Resource.Key == o.Resource.Key &&
		maps.Equal(d.Resource.Labels, o.Resource.Labels) && slices.Equal(d.ports, o.ports) && unreachable(d) == unreachable(o)
}

// Key returns the key of the whole resource.
func (d *Destination) Key() ResourceKey {
	k := d.Resource.Key
	return ResourceKey{Type: k.Type, Mesh: k.Mesh, Namespace: k.Namespace, Name: k.Name}
}

// Sections returns the names of the resource's ports, as rules use them, in the resource's order. Routes have no
// sections.
func (d *Destination) Sections() []string {
	out := make([]string, len(d.ports))
	for i, p := range d.ports {
		out[i] = p.section()
	}
	return out
}

// SectionOf finds the section with a port's name or number. Names take precedence.
func (d *Destination) SectionOf(nameOrNumber string) (string, bool) {
	for _, p := range d.ports {
		if p.name != "" && p.name == nameOrNumber {
			return p.name, true
		}
	}
	for _, p := range d.ports {
		if strconv.FormatUint(uint64(p.number), 10) == nameOrNumber {
			return p.section(), true
		}
	}
	return "", false
}
