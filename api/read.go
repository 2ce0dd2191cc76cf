package api

import (
	"cmp"
	"iter"
	"net/http"
	"net/url"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// view reads the store and, for live types, the additions of the status store. Each shows one moment.
type view struct {
	stored, live store.Snapshot
}

func (s *Server) view() view {
	return view{stored: s.config.Store.Snapshot(), live: s.config.Status.Snapshot()}
}

func (v view) get(k resources.Key) *resources.Resource {
	if k.Type.Live() {
		if r := v.live.Get(k); r != nil {
			return r
		}
	}
	return v.stored.Get(k)
}

func (v view) list(q store.Query) iter.Seq[*resources.Resource] {
	if !q.Type.Live() {
		return v.stored.List(q)
	}
	return func(yield func(*resources.Resource) bool) {
		live := slices.Collect(v.live.List(q))
		for r := range v.stored.List(q) {
			for ; len(live) > 0 && compareInList(live[0].Key, r.Key) < 0; live = live[1:] {
				if !yield(live[0]) {
					return
				}
			}
			if v.live.Get(r.Key) == nil && !yield(r) {
				return
			}
		}
		for _, r := range live {
			if !yield(r) {
				return
			}
		}
	}
}

// total returns how many resources of a type there are. It takes a walk only if both stores have some.
func (v view) total(t resources.Type) (n int) {
	if !t.Live() {
		return v.stored.Total(t)
	}
	if v.stored.Total(t) == 0 {
		return v.live.Total(t)
	}
	for range v.list(store.Query{Type: t}) {
		n++
	}
	return n
}

// besides finds the insights of resources that are asked about in the order of lists, without a look-up for each.
type besides struct {
	all  iter.Seq[*resources.Resource]
	rest []*resources.Resource
}

// insightsOf has the insights of the resources of a list. It reads them when it is asked first: not for a caller who may
// read none of the resources.
func (v view) insightsOf(q store.Query) *besides {
	return &besides{all: v.list(store.Query{Type: insightOf(q.Type), Mesh: q.Mesh, Namespace: q.Namespace})}
}

// of returns the insight of a resource, or nil. Each resource must follow the one before in the order of lists.
func (b *besides) of(r *resources.Resource) *resources.Resource {
	if b.all != nil {
		b.all, b.rest = nil, slices.Collect(b.all)
	}
	for len(b.rest) > 0 {
		switch order := compareInList(b.rest[0].Key, r.Key); {
		case order == 0:
			return b.rest[0]
		case order > 0:
			return nil
		}
		b.rest = b.rest[1:]
	}
	return nil
}

// compareInList compares two resources of a type by their places in lists.
func compareInList(a, b resources.Key) int {
	return cmp.Or(cmp.Compare(a.Mesh, b.Mesh), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// descriptorOf returns the type that a path names. Items of a mesh-scoped type are under the mesh, and items of global
// scope are not.
func descriptorOf(r *http.Request) (*resources.Descriptor, error) {
	plural := r.PathValue("plural")
	d, ok := resources.LookupPath(plural)
	if !ok {
		return nil, NewError(http.StatusNotFound, "Not Found", "no resource type has the path "+plural+
			": GET /_resources lists them")
	}
	if d.Scope == resources.ScopeGlobal && r.PathValue("mesh") != "" {
		return nil, NewError(http.StatusNotFound, "Not Found", string(d.Type)+" does not belong to a mesh: use /"+d.Path)
	}
	return d, nil
}

// keyOf returns the key that the path and the query of an item name.
func keyOf(r *http.Request, d *resources.Descriptor) (resources.Key, error) {
	k := resources.Key{Type: d.Type, Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace"),
		Name: r.PathValue("name")}
	if d.Scope == resources.ScopeMesh && k.Mesh == "" {
		return k, NewError(http.StatusNotFound, "Not Found", string(d.Type)+" belongs to a mesh: use /meshes/{mesh}/"+
			d.Path+"/"+k.Name)
	}
	return k, nil
}

// named returns the resource that a request's path names, if the caller may read it.
func (s *Server) named(r *http.Request) (*resources.Resource, error) {
	d, err := descriptorOf(r)
	if err != nil {
		return nil, err
	}
	key, err := keyOf(r, d)
	if err != nil {
		return nil, err
	}
	return s.find(r, s.view(), resources.VerbRead, key)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) error {
	found, err := s.named(r)
	if err != nil {
		return err
	}
	return s.writeItem(w, r, found)
}

// wantsExplicit reports whether a query asks for policies with their defaults written out.
func wantsExplicit(q url.Values) (bool, error) {
	switch form := q.Get("form"); form {
	case "":
		return false, nil
	case "explicit":
		return true, nil
	default:
		return false, BadField("form", "unknown form %q, want explicit or none", form)
	}
}

// writeItem responds with one resource in the form that the query asks for.
func (s *Server) writeItem(w http.ResponseWriter, r *http.Request, found *resources.Resource) error {
	q := r.URL.Query()
	explicit, err := wantsExplicit(q)
	if err != nil {
		return err
	}
	tag := tagOf(found)
	if explicit {
		if found, err = resources.Explicit(found, s.config.Home.SystemNamespace); err != nil {
			return err
		}
	}
	w.Header().Set(tagHeader, tag)
	found = s.shown(found, s.Reader(r))
	switch format := q.Get("format"); format {
	case "", "universal":
		return writeRaw(w, resources.AppendUniversal(nil, found))
	case "k8s", "kubernetes":
		return writeRaw(w, resources.AppendKubernetes(nil, found))
	default:
		return BadField("format", "unknown format %q, want universal or k8s", format)
	}
}

// byKRI responds with the resource of a KRI, whatever its mesh, namespace and name on this server. It ignores a
// section.
func (s *Server) byKRI(w http.ResponseWriter, r *http.Request) error {
	kri, err := resources.ParseKRI(r.PathValue("kri"))
	if err != nil {
		return BadField("kri", "%v", err)
	}
	found := s.view().find(kri.WithSection(""))
	d, _ := resources.LookupShort(kri.Short)
	key := resources.Key{Type: d.Type, Mesh: kri.Mesh, Namespace: kri.Namespace, Name: kri.Name}
	if err := s.judge(r, resources.VerbRead, key, found); err != nil {
		return err
	}
	if found == nil {
		return s.view().missingKRI(key, kri, s.Reader(r))
	}
	return s.writeItem(w, r, found)
}

// Find returns the resource that a KRI names, or nil, whatever its mesh, namespace and name on this server. It ignores
// the KRI's section.
func (v view) find(kri resources.KRI) *resources.Resource {
	d, _ := resources.LookupShort(kri.Short)
	q := store.Query{Type: d.Type, Mesh: kri.Mesh, Labels: map[string]string{resources.LabelDisplayName: kri.Name}}
	for r := range v.list(q) {
		if resources.KRIOf(r) == kri {
			return r
		}
	}
	direct := v.get(resources.Key{Type: d.Type, Mesh: kri.Mesh, Namespace: kri.Namespace, Name: kri.Name})
	if direct != nil && resources.KRIOf(direct) == kri {
		return direct
	}
	return nil
}

// Find returns the resource that a KRI names, or nil, whatever its mesh, namespace and name on this server. It ignores
// the KRI's section.
func Find(r store.Reader, kri resources.KRI) *resources.Resource {
	if _, ok := resources.LookupShort(kri.Short); !ok {
		return nil
	}
	snapshot := r.Snapshot()
	return view{stored: snapshot, live: snapshot}.find(kri.WithSection(""))
}
