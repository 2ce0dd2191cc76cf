package matching

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
)

// ResourceKey names what a rule is for: a resource as its reader's store has it, or one section of it. The key of kind
// Mesh has the mesh's name in both Mesh and Name.
type ResourceKey struct {
	Type      resources.Type
	Mesh      string
	Namespace string
	Name      string
	// Section is a port: its name, or its number where it has none. Empty for the whole resource.
	Section string
}

// String is for logs and for people: `MeshService default/backend-ns/backend#http`.
func (k ResourceKey) String() string {
	s := resources.Key{Type: k.Type, Mesh: k.Mesh, Namespace: k.Namespace, Name: k.Name}.String()
	if k.Section != "" {
		s += "#" + k.Section
	}
	return s
}

// Whole is k without its section.
func (k ResourceKey) Whole() ResourceKey {
	k.Section = ""
	return k
}

func meshKey(mesh string) ResourceKey {
	return ResourceKey{Type: resources.TypeMesh, Mesh: mesh, Name: mesh}
}

// Destination is one resource that an item of `to` can mean. Callers keep it as long as the resource's revision stands.
// Nobody changes a Destination once it is made.
type Destination struct {
	Resource *resources.Resource
	KRI      resources.KRI
	// HashedName is the one that the resource has where it is a copy.
	HashedName string

	zone, namespace string
	ports           []port
	// parentRefs are what a route says it is for; nil for services.
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

// IsDestination reports whether resources of the type can stand in `to`.
func IsDestination(t resources.Type) bool {
	switch t {
	case resources.TypeMeshService, resources.TypeMeshMultiZoneService, resources.TypeMeshExternalService,
		resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute:
		return true
	}
	return false
}

// NewDestination reads a resource. It fails when r is of another type or its spec does not decode.
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

// Key names the whole resource.
func (d *Destination) Key() ResourceKey {
	k := d.Resource.Key
	return ResourceKey{Type: k.Type, Mesh: k.Mesh, Namespace: k.Namespace, Name: k.Name}
}

// Sections are the names of the resource's ports, as rules have them, in its order. Routes have none.
func (d *Destination) Sections() []string {
	out := make([]string, len(d.ports))
	for i, p := range d.ports {
		out[i] = p.section()
	}
	return out
}

// SectionOf finds the section that is meant by a port's name or number, names first.
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

// DestinationsConfig says from where destinations are looked at.
type DestinationsConfig struct {
	// Zone is the zone whose proxies are asked about: the server's own, or on the global that of the proxy.
	Zone string
	// SystemNamespace is where the reader keeps copies; DefaultSystemNamespace unless set.
	SystemNamespace string
	// Gateways are the MeshGateways that targetRefs of policies may mean. Only Problems asks for them.
	Gateways []*resources.Resource
	// Grants are the MeshReferenceGrants of all meshes.
	Grants []*resources.Resource
}

// Destinations finds services and routes by what refers to them. It is built once and never changed; concurrent readers
// are fine.
type Destinations struct {
	zone, systemNamespace string
	// sorted holds all, by key.
	sorted []*Destination
	// objects finds by the name that a copy has anywhere, displayed by the name that the resource has at home.
	objects, displayed map[nameKey][]*Destination
	labelled           map[labelKey][]*Destination
	// parents are the services and sections that a route is for.
	parents map[ResourceKey][]ResourceKey
	// gateways are MeshGateways, by mesh.
	gateways map[string][]*resources.Resource
	// grants are by mesh.
	grants map[string][]grant
}

type nameKey struct {
	t    resources.Type
	mesh string
	name string
}

type labelKey struct {
	t    resources.Type
	mesh string
	label
}

// NewDestinations indexes what policies and proxies may refer to, of any meshes. It takes time and memory linear in the
// number of destinations and their labels, apart from sorting.
func NewDestinations(c DestinationsConfig, all []*Destination) *Destinations {
	if c.SystemNamespace == "" {
		c.SystemNamespace = resources.DefaultSystemNamespace
	}
	x := &Destinations{
		zone: c.Zone, systemNamespace: c.SystemNamespace, sorted: slices.Clone(all),
		objects: make(map[nameKey][]*Destination, len(all)), displayed: make(map[nameKey][]*Destination, len(all)),
		labelled: make(map[labelKey][]*Destination, len(all)), parents: map[ResourceKey][]ResourceKey{},
		gateways: map[string][]*resources.Resource{}, grants: map[string][]grant{},
	}
	x.readGrants(c.Grants)
	for _, g := range c.Gateways {
		x.gateways[g.Mesh] = append(x.gateways[g.Mesh], g)
	}
	slices.SortFunc(x.sorted, func(a, b *Destination) int { return compareKeys(a.Key(), b.Key()) })
	for _, d := range x.sorted {
		x.add(d)
	}
	for _, d := range x.sorted {
		x.addParents(d)
	}
	return x
}

func compareKeys(a, b ResourceKey) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Mesh, b.Mesh), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Section, b.Section))
}

func (x *Destinations) add(d *Destination) {
	r := d.Resource
	display := r.DisplayName()
	at := nameKey{r.Type, r.Mesh, display}
	x.displayed[at] = append(x.displayed[at], d)
	at.name = d.HashedName
	x.objects[at] = append(x.objects[at], d)
	if r.Name != display && r.Name != d.HashedName { // a copy that another implementation named
		at.name = r.Name
		x.objects[at] = append(x.objects[at], d)
	}
	for k, v := range r.Labels {
		l := labelKey{r.Type, r.Mesh, label{k, v}}
		x.labelled[l] = append(x.labelled[l], d)
	}
}

// addParents resolves what a route is for, within what its role lets it mean.
func (x *Destinations) addParents(d *Destination) {
	if len(d.parentRefs) == 0 {
		return
	}
	from := Referrer{
		Mesh: d.Resource.Mesh, Zone: d.zone, Namespace: d.namespace, Role: resources.RoleOf(d.Resource, x.systemNamespace),
	}
	var parents []ResourceKey
	for i := range d.parentRefs {
		if !isService(d.parentRefs[i].KindOrMesh()) {
			continue
		}
		targets, _ := x.resolveContained(from, &d.parentRefs[i])
		for _, t := range targets {
			parents = append(parents, t.Key())
		}
	}
	if len(parents) == 0 {
		return
	}
	slices.SortFunc(parents, compareKeys)
	x.parents[d.Key()] = slices.Compact(parents)
}

func isService(kind string) bool {
	switch kind {
	case resources.KindMeshService, resources.KindMeshMultiZoneService, resources.KindMeshExternalService:
		return true
	}
	return false
}

// All returns every destination, sorted by key. The caller must not change the slice.
func (x *Destinations) All() []*Destination { return x.sorted }

// Parents returns the services, or sections of services, whose traffic a route is for. The caller must not change it.
func (x *Destinations) Parents(route ResourceKey) []ResourceKey { return x.parents[route] }
