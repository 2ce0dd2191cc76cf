package explain

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// localZone is the zone of files that do not name one.
const localZone = "local"

// Options describe where resources were read.
type Options struct {
	// SystemNamespace is that of the server that reads them; empty means resources.DefaultSystemNamespace.
	SystemNamespace string
	// Zone is a zone server's own zone, and empty on the global. For files, it is the zone of Dataplanes, of
	// MeshServices, and of policies in namespaces, if they do not carry `kuma.io/zone`; empty means "local".
	Zone string
	// Shortfalls returns the reports of proxies about the policies of a mesh. Nil means that there are none, as for files.
	Shortfalls func(mesh string) matching.Shortfalls
	// Doubts returns the reasons why the proxy of a Dataplane may not do what the stored resources say. Nil means that
	// there are none, as for files.
	Doubts func(dataplane resources.Key, zone string) []string
}

// World is a set of resources to ask about. It reads resources on the first question that needs them and caches the
// result. Use it from one goroutine, for one moment.
type World struct {
	options Options
	// files reports that all resources are known, and not only those that a server has.
	files  bool
	list   func(t resources.Type, mesh string) iter.Seq[*resources.Resource]
	meshes map[string]*mesh
	// may reports whether the caller may read a resource; nil allows all.
	may func(*resources.Resource) bool
}

// mesh is one mesh, parsed.
type mesh struct {
	services []*resources.Resource
	policies []*matching.Policy
	byKRI    map[resources.KRI]*matching.Policy
	index    *matching.Index
	proxies  []*matching.Proxy
	// domains are the trust domains of the mesh; nil if they are unknown.
	domains map[string]bool
	hidden  hidden
	patches []*matching.Policy // MeshProxyPatches
}

// home is the zone and namespace of a proxy and of the services that can select it.
type home struct{ zone, namespace string }

// FromSnapshot reads a server's store.
func FromSnapshot(snap store.Snapshot, o Options) *World {
	return newWorld(o, func(t resources.Type, mesh string) iter.Seq[*resources.Resource] {
		return snap.List(store.Query{Type: t, Mesh: mesh})
	})
}

// FromFiles reads resources as resources.DecodeDocuments returns them. They get the labels that they would have on
// their own server: that of the zone that their labels name, else of Options.Zone for types that exist only in zones
// and for policies in a namespace that no label calls the global's, else of the global.
func FromFiles(list []*resources.Resource, o Options) *World {
	o.Zone = cmp.Or(o.Zone, localZone)
	o.SystemNamespace = cmp.Or(o.SystemNamespace, resources.DefaultSystemNamespace)
	labelled := make([]*resources.Resource, len(list))
	for i, r := range list {
		labelled[i] = atHome(r, o)
	}
	w := newWorld(o, func(t resources.Type, mesh string) iter.Seq[*resources.Resource] {
		return func(yield func(*resources.Resource) bool) {
			for _, r := range labelled {
				if r.Type == t && (mesh == "" || r.Mesh == mesh) && !yield(r) {
					return
				}
			}
		}
	})
	w.files = true
	return w
}

func newWorld(o Options, list func(resources.Type, string) iter.Seq[*resources.Resource]) *World {
	o.SystemNamespace = cmp.Or(o.SystemNamespace, resources.DefaultSystemNamespace)
	return &World{options: o, list: list, meshes: map[string]*mesh{}}
}

// atHome adds computed labels. It keeps those that a server computed: a copy keeps its display name and role.
func atHome(r *resources.Resource, o Options) *resources.Resource {
	home := resources.Home{Zone: r.Labels[resources.LabelZone], SystemNamespace: o.SystemNamespace}
	custom := r.Namespace != "" && r.Namespace != o.SystemNamespace &&
		r.Labels[resources.LabelOrigin] != resources.OriginGlobal
	if home.Zone == "" && (r.Descriptor().WrittenOn&resources.OnGlobal == 0 || custom ||
		r.Labels[resources.LabelOrigin] == resources.OriginZone) {
		home.Zone = o.Zone
	}
	c := r.Clone()
	for k, v := range home.ComputedLabels(r) {
		if c.Labels[k] == "" {
			c.Labels[k] = v
		}
	}
	return c
}

// Meshes returns the names of all meshes that have a resource, sorted.
func (w *World) Meshes() []string {
	names := map[string]bool{}
	for _, t := range []resources.Type{resources.TypeMeshTrafficPermission, resources.TypeTrafficTarget,
		resources.TypeDataplane} {
		for r := range w.list(t, "") {
			names[r.Mesh] = true
		}
	}
	for r := range w.list(resources.TypeMesh, "") {
		names[r.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (w *World) mesh(name string) *mesh {
	if m := w.meshes[name]; m != nil {
		return m
	}
	m := &mesh{byKRI: map[resources.KRI]*matching.Policy{},
		hidden: hidden{kris: map[string]bool{}, proxies: map[resources.Key]bool{}}}
	neighbours := map[home][]*resources.Resource{}
	for r := range w.list(resources.TypeMeshService, name) {
		m.services = append(m.services, r)
		at := home{r.Zone(), r.HomeNamespace()}
		neighbours[at] = append(neighbours[at], r)
	}
	for r := range w.list(resources.TypeMeshTrafficPermission, name) {
		m.addPolicy(matching.NewPolicy(r, w.options.SystemNamespace))
	}
	inMesh := func(t resources.Type) iter.Seq[*resources.Resource] { return w.list(t, name) }
	for _, p := range matching.TrafficTargets(w.options.SystemNamespace, inMesh) {
		m.addPolicy(p)
	}
	m.index = matching.NewIndex(m.policies)
	gateways := slices.Collect(w.list(resources.TypeMeshGateway, name))
	for r := range w.list(resources.TypeDataplane, name) {
		if p, err := matching.NewProxy(r); err == nil { // an invalid one gets no listener either
			m.proxies = append(m.proxies, p.WithServices(neighbours[home{p.Zone, p.Namespace}]).WithGateways(gateways, w.options.SystemNamespace))
			if w.hides(r) {
				m.hidden.add(r)
			}
		}
	}
	for r := range w.list(resources.TypeMeshTrust, name) {
		if trust, err := resources.SpecAs[resources.MeshTrust](r); err == nil {
			if m.domains == nil {
				m.domains = map[string]bool{}
			}
			m.domains[trust.TrustDomain] = true
		}
	}
	w.loadPatches(name, m)
	for _, p := range m.policies {
		if w.hides(p.Resource) {
			m.hidden.add(p.Resource)
		}
	}
	for _, service := range m.services {
		if w.hides(service) {
			m.hidden.add(service)
		}
	}
	w.meshes[name] = m
	return m
}

func (m *mesh) addPolicy(p *matching.Policy) {
	m.policies = append(m.policies, p)
	m.byKRI[p.KRI] = p
}
