package resources

import (
	"encoding/json"
	"maps"
	"time"
)

// Key identifies a resource in one store. Mesh is empty for types of global scope. Namespace is empty for resources
// without one (all of Universal, unless a user sets one). The wire format has no namespace: kds derives it.
type Key struct {
	Type      Type
	Mesh      string
	Namespace string
	Name      string
}

// String returns a form for errors and logs: `MeshTimeout default/backend-ns/slow`.
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

// Resource is one stored resource. It is immutable once a store or a decoder has handed it out: to change one, Clone it
// and apply the clone.
type Resource struct {
	Key
	// Labels holds all labels, including computed ones.
	Labels map[string]string
	// Spec is the spec that the user wrote. It is never nil.
	Spec *Spec
	// Status is canonical JSON, or nil.
	Status json.RawMessage
	// Revision is the store's revision of the last write that changed the resource. It is zero until the resource is
	// stored.
	Revision                       uint64
	CreationTime, ModificationTime time.Time
	// Version is the wire version in which a copy arrived. Every server with the store can thus report which resources
	// it has from a peer. It is empty for resources written here.
	Version string
	// Object is the Kubernetes object that users wrote it as. Peers do not see it.
	Object Object
}

// Clone returns a copy whose labels may be changed. Spec and Status are shared: replace them, but never modify them.
func (r *Resource) Clone() *Resource {
	c := *r
	c.Labels = maps.Clone(r.Labels)
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	return &c
}

// WithSpec returns r with another spec. If spec is r's own, it returns r itself.
func (r *Resource) WithSpec(spec *Spec) *Resource {
	if spec == r.Spec {
		return r
	}
	c := r.Clone()
	c.Spec = spec
	return c
}

// SameContent reports whether labels, spec, status and object are equal. It ignores revision, version and times.
func (r *Resource) SameContent(o *Resource) bool {
	return r.Object == o.Object && r.Spec.Equal(o.Spec) && maps.Equal(r.Labels, o.Labels) &&
		string(r.Status) == string(o.Status)
}

// DisplayName returns the name that the resource has at home.
func (r *Resource) DisplayName() string {
	if n := r.Labels[LabelDisplayName]; n != "" {
		return n
	}
	return r.Name
}

// Zone returns the zone that the resource was written in, or "" for resources of the global.
func (r *Resource) Zone() string { return r.Labels[LabelZone] }

// isCopy reports whether r has another name here than at home.
func (r *Resource) isCopy() bool { return r.Name != r.DisplayName() }

// HomeNamespace returns the namespace that the resource has at home. The Namespace of a copy is its receiver's, so a
// copy without the label has no home namespace.
func (r *Resource) HomeNamespace() string {
	if ns, ok := r.Labels[LabelNamespace]; ok {
		return ns
	}
	if r.isCopy() {
		return ""
	}
	return r.Namespace
}
