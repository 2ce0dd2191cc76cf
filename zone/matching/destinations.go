package matching

import (
	"cmp"
	"slices"
	"sync"

	"github.com/causeway-mesh/causeway/resources"
)

// ResourceKey identifies the subject of a rule: a resource as it is named in the reader's store, or one section of it.
// The key of kind Mesh has the mesh's name in both Mesh and Name.
type ResourceKey struct {
	Type      resources.Type
	Mesh      string
	Namespace string
	Name      string
	// Section is a port: its name, or its number if it has no name. Empty for the whole resource.
	Section string
}

// String returns the key for logs and users: `MeshService default/backend-ns/backend#http`.
func (k ResourceKey) String() string {
	s := resources.Key{Type: k.Type, Mesh: k.Mesh, Namespace: k.Namespace, Name: k.Name}.String()
	if k.Section != "" {
		s += "#" + k.Section
	}
	return s
}

// Whole returns k without its section.
func (k ResourceKey) Whole() ResourceKey {
	k.Section = ""
	return k
}

func meshKey(mesh string) ResourceKey {
	return ResourceKey{Type: resources.TypeMesh, Mesh: mesh, Name: mesh}
}

// DestinationsConfig defines the point of view for resolving destinations.
type DestinationsConfig struct {
	// Zone is the zone whose proxies are the subject: the server's own, or on the global that of the proxy.
	Zone string
	// SystemNamespace is where the reader keeps copies; DefaultSystemNamespace when empty.
	SystemNamespace string
	// Gateways are the MeshGateways that targetRefs of policies may mean. Only Problems needs them.
	Gateways []*resources.Resource
	// Grants are the MeshReferenceGrants of all meshes.
	Grants []*resources.Resource
	// Before are the Destinations that the new ones replace, whose Meaning they have if references mean the same. It may be nil.
	Before *Destinations
}

// Meaning identifies what references mean among some Destinations. The rules of To are the same for all Destinations with one
// Meaning, but for the version of a service that is their Destination. It is comparable as a pointer, and opaque.
type Meaning struct{ _ byte }

// Destinations finds services and routes by the references to them. It is immutable and safe for concurrent use.
type Destinations struct {
	zone, systemNamespace string
	// sorted holds all destinations, by key.
	sorted []*Destination
	// objects indexes destinations by the name of their copies, displayed by their original name.
	objects, displayed map[nameKey][]*Destination
	// byLabel indexes them by each of their labels, once a reference asks for one: most name what they mean.
	byLabel   map[labelKey][]*Destination
	labelling sync.Once
	// parents holds the services and sections of each route.
	parents map[ResourceKey][]ResourceKey
	// gateways holds the MeshGateways, by mesh.
	gateways map[string][]*resources.Resource
	// grants holds the grants, by mesh.
	grants map[string][]grant
	// meaning is the Meaning, which depends on these beside the destinations.
	meaning *Meaning
	of      DestinationsConfig
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

// NewDestinations indexes the destinations that policies and proxies of any mesh may refer to. Apart from sorting, it
// takes time and memory linear in the number of destinations and their labels.
func NewDestinations(c DestinationsConfig, all []*Destination) *Destinations {
	if c.SystemNamespace == "" {
		c.SystemNamespace = resources.DefaultSystemNamespace
	}
	x := &Destinations{
		zone: c.Zone, systemNamespace: c.SystemNamespace, sorted: slices.Clone(all),
	}
	if len(all) > 0 {
		x.objects, x.displayed = make(map[nameKey][]*Destination, len(all)), make(map[nameKey][]*Destination, len(all))
	}
	x.readGrants(c.Grants)
	for _, g := range c.Gateways {
		if x.gateways == nil {
			x.gateways = map[string][]*resources.Resource{}
		}
		x.gateways[g.Mesh] = append(x.gateways[g.Mesh], g)
	}
	slices.SortFunc(x.sorted, func(a, b *Destination) int { return compareKeys(a.Key(), b.Key()) })
	for _, d := range x.sorted {
		x.add(d)
	}
	for _, d := range x.sorted {
		x.addParents(d)
	}
	x.setMeaning(&c)
	return x
}

// Meaning returns what references mean.
func (x *Destinations) Meaning() *Meaning { return x.meaning }

// setMeaning takes the meaning of what was before, or a new one.
func (x *Destinations) setMeaning(c *DestinationsConfig) {
	before := c.Before
	x.meaning, x.of = &Meaning{}, *c
	x.of.Before = nil // it would keep what was before that
	if before != nil && before.of.Zone == c.Zone && before.of.SystemNamespace == c.SystemNamespace &&
		slices.Equal(before.of.Gateways, c.Gateways) && slices.Equal(before.of.Grants, c.Grants) &&
		slices.EqualFunc(before.sorted, x.sorted, func(then, now *Destination) bool {
			return then == now || then.IsStill(now.Resource) || then.meansAs(now)
		}) {
		x.meaning = before.meaning
	}
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
	if r.Name != display && r.Name != d.HashedName { // a copy with a name from another implementation
		at.name = r.Name
		x.objects[at] = append(x.objects[at], d)
	}
}

// labelled returns the destinations by each of their labels.
func (x *Destinations) labelled() map[labelKey][]*Destination {
	x.labelling.Do(func() {
		x.byLabel = make(map[labelKey][]*Destination, len(x.sorted))
		for _, d := range x.sorted {
			for k, v := range d.Resource.Labels {
				l := labelKey{d.Resource.Type, d.Resource.Mesh, label{k, v}}
				x.byLabel[l] = append(x.byLabel[l], d)
			}
		}
	})
	return x.byLabel
}

// addParents resolves the services of a route, limited to what its role may refer to.
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
	if x.parents == nil {
		x.parents = map[ResourceKey][]ResourceKey{}
	}
	x.parents[d.Key()] = slices.Compact(parents)
}

func isService(kind string) bool {
	switch kind {
	case resources.KindMeshService, resources.KindMeshMultiZoneService, resources.KindMeshExternalService:
		return true
	}
	return false
}

// Find returns the destination of a key; nil if there is none.
func (x *Destinations) Find(key resources.Key) *Destination {
	at := ResourceKey{Type: key.Type, Mesh: key.Mesh, Namespace: key.Namespace, Name: key.Name}
	i, ok := slices.BinarySearchFunc(x.sorted, at, func(d *Destination, k ResourceKey) int { return compareKeys(d.Key(), k) })
	if !ok {
		return nil
	}
	return x.sorted[i]
}

// All returns all destinations, sorted by key. The caller must not change the slice.
func (x *Destinations) All() []*Destination { return x.sorted }

// Parents returns the services, or sections of services, whose traffic a route is for. The caller must not change the
// slice.
func (x *Destinations) Parents(route ResourceKey) []ResourceKey { return x.parents[route] }
