package resources

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// Key identifies a resource in one store. Mesh is empty for types of global scope, Namespace for resources that
// have none (all of Universal, unless a user sets one). On the wire there is no namespace: kds derives it.
type Key struct {
	Type      Type
	Mesh      string
	Namespace string
	Name      string
}

// String is for errors and logs: `MeshTimeout default/backend-ns/slow`.
func (k Key) String() string {
	s := string(k.Type) + " "
	if k.Mesh != "" {
		s += k.Mesh + "/"
	}
	if k.Namespace != "" {
		s += k.Namespace + "/"
	}
	return s + k.Name
}

// Resource is one stored thing. It is immutable once a store or a decoder has handed it out: to change one, Clone it
// and apply the clone.
type Resource struct {
	Key
	// Labels are all labels, computed ones included.
	Labels map[string]string
	// Spec is what the user wrote, never nil.
	Spec *Spec
	// Status is canonical JSON, or nil.
	Status json.RawMessage
	// Revision is the store's revision of the last write that changed the resource; zero before it is stored.
	Revision                       uint64
	CreationTime, ModificationTime time.Time
	// Version is the version on the wire that a copy came in, so that every server with the store can say what it has of a peer;
	// empty for what was written here.
	Version string
}

// Clone returns a copy whose labels may be changed. Spec and Status are shared: replace them, never write into them.
func (r *Resource) Clone() *Resource {
	c := *r
	c.Labels = maps.Clone(r.Labels)
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	return &c
}

// WithSpec returns r with another spec: r itself where it is the one that r has.
func (r *Resource) WithSpec(spec *Spec) *Resource {
	if spec == r.Spec {
		return r
	}
	c := r.Clone()
	c.Spec = spec
	return c
}

// Descriptor returns the registry's row for the resource. It panics for an unknown type: decoders refuse those, so
// no Resource with one exists.
func (r *Resource) Descriptor() *Descriptor {
	d, ok := LookupStored(r.Type)
	if !ok {
		panic(fmt.Sprintf("resource of unregistered type %q", r.Type))
	}
	return d
}

// SameContent reports whether labels, spec and status are equal; revision, version and times do not count.
func (r *Resource) SameContent(o *Resource) bool {
	return r.Spec.Equal(o.Spec) && maps.Equal(r.Labels, o.Labels) && string(r.Status) == string(o.Status)
}

// DisplayName is the name that the resource has at home.
func (r *Resource) DisplayName() string {
	if n := r.Labels[LabelDisplayName]; n != "" {
		return n
	}
	return r.Name
}

// Zone is the zone that the resource was written in, empty for resources of the global.
func (r *Resource) Zone() string { return r.Labels[LabelZone] }

// isCopy reports whether r has another name here than at home.
func (r *Resource) isCopy() bool { return r.Name != r.DisplayName() }

// HomeNamespace is the namespace that the resource has at home; a copy's own Namespace is its receiver's, so that a copy
// without the label has none.
func (r *Resource) HomeNamespace() string {
	if ns, ok := r.Labels[LabelNamespace]; ok {
		return ns
	}
	if r.isCopy() {
		return ""
	}
	return r.Namespace
}
