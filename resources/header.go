package resources

import (
	"cmp"
	"maps"
	"slices"
)

// header holds the fields around a spec.
type header struct {
	key        Key
	labels     map[string]string
	descriptor *Descriptor
	// spec holds the spec's fields. nested reports whether they are under "spec" or at the top level.
	spec   *node
	nested bool
}

// apiVersion is the group and version of the Kubernetes form, except for types of the Service Mesh Interface.
const apiVersion = "kuma.io/v1alpha1"

// defaultMesh is the mesh of resources in Kubernetes form that have no mesh label.
const defaultMesh = "default"

// Fields of both forms that servers add and clients send back. They are accepted and ignored.
var (
	ignoredUniversal = []string{"status", "creationTime", "modificationTime", "kri", "snis"}
	ignoredMetadata  = []string{"annotations", "creationTimestamp", "resourceVersion", "uid", "generation",
		"managedFields",
		"ownerReferences", "finalizers", "selfLink", "generateName", "deletionTimestamp", "deletionGracePeriodSeconds"}
)

// universalHeader reads `type`, `mesh`, `namespace`, `name` and `labels`. If the fields of the type are at the top
// level, the remaining ones are the spec.
func universalHeader(c *strict, doc *node) header {
	h := header{spec: &node{kind: objectNode, line: doc.line}}
	h.readType(c, doc.get("type"), "type", doc)
	h.nested = h.descriptor == nil || h.descriptor.Codec == JSON
	for _, f := range doc.fields {
		at := (*fieldPath)(nil).field(f.name)
		switch {
		case f.name == "type" || slices.Contains(ignoredUniversal, f.name):
		case f.name == "mesh":
			h.key.Mesh = c.text(f.value, at)
		case f.name == "namespace":
			h.key.Namespace = c.text(f.value, at)
		case f.name == "name":
			h.key.Name = c.text(f.value, at)
		case f.name == "labels":
			h.labels = c.labels(f.value, at)
		case h.descriptor == nil: // only the type decides which other fields are allowed
		case !h.nested && f.name == "spec":
			c.failLine(f.line, at, "the fields of a %s belong at the top level, without spec", h.key.Type)
		case !h.nested:
			h.spec.fields = append(h.spec.fields, f)
		case f.name == "spec":
			h.readSpec(c, f.value, at)
		default:
			c.failLine(f.line, at, "unknown field%s",
				Suggestion(f.name, []string{"type", "mesh", "namespace", "name", "labels", "spec"}))
		}
	}
	c.required(doc, h.key.Name, "name")
	return h
}

// kubernetesHeader reads `apiVersion`, `kind` and `metadata`. The mesh comes from the label LabelMesh.
func kubernetesHeader(c *strict, doc *node) header {
	h := header{spec: &node{kind: objectNode, line: doc.line}, nested: true}
	h.readType(c, doc.get("kind"), "kind", doc)
	version := ""
	var topLevel []nodeField
	for _, f := range doc.fields {
		at := (*fieldPath)(nil).field(f.name)
		switch f.name {
		case "kind", "status":
		case "apiVersion":
			version = c.text(f.value, at)
		case "mesh": // types with a protobuf spec have their mesh here
			h.key.Mesh = c.text(f.value, at)
		case "metadata":
			h.readMetadata(c, f.value, at)
		case "spec":
			h.readSpec(c, f.value, at)
		default:
			if isSMI(h.key.Type) { // older versions have the spec's fields at the top level
				topLevel = append(topLevel, f)
				continue
			}
			c.failLine(f.line, at, "unknown field%s", Suggestion(f.name, []string{"apiVersion", "kind", "metadata", "spec"}))
		}
	}
	h.addTopLevel(c, doc, topLevel)
	switch {
	case isSMI(h.key.Type):
		if !isSMIVersion(h.key.Type, version) {
			c.fail(doc, (*fieldPath)(nil).field("apiVersion"), "want %s/v1alpha1 to v1alpha4, got %q",
				smiGroup(h.key.Type), version)
		}
	case version != apiVersion:
		c.fail(doc, (*fieldPath)(nil).field("apiVersion"), "want %s, got %q", apiVersion, version)
	}
	c.required(doc, h.key.Name, "metadata.name")
	h.dropImplied()
	if h.descriptor != nil && h.descriptor.Scope == ScopeMesh && h.key.Mesh == "" {
		if h.key.Mesh = h.labels[LabelMesh]; h.key.Mesh == "" {
			h.key.Mesh = defaultMesh
		}
	}
	return h
}

// dropImplied removes the labels by which Kuma repeats what the Kubernetes form of a document says anyway: the
// environment and, for types without a mesh, the namespace, and that there is no mesh.
func (h *header) dropImplied() {
	meshless := h.descriptor != nil && h.descriptor.Scope == ScopeGlobal
	maps.DeleteFunc(h.labels, func(key, value string) bool {
		switch key {
		case LabelEnv:
			return value == envKubernetes
		case LabelNamespace:
			return meshless && value == h.key.Namespace
		case LabelMesh:
			return meshless && value == ""
		}
		return false
	})
}

// addTopLevel makes the fields beside metadata the spec of a document that has no spec.
func (h *header) addTopLevel(c *strict, doc *node, fields []nodeField) {
	switch {
	case len(fields) == 0:
	case doc.get("spec") != nil:
		c.failLine(fields[0].line, (*fieldPath)(nil).field(fields[0].name), "belongs in spec")
	default:
		h.spec.fields, h.nested = fields, false
	}
}

func (h *header) readType(c *strict, n *node, field string, doc *node) {
	at := (*fieldPath)(nil).field(field)
	if n == nil || n.kind == nullNode {
		c.fail(doc, at, "is required: the type of the resource, for example MeshTrafficPermission")
		return
	}
	if !c.want(n, stringNode, at) {
		return
	}
	name := n.text
	h.key.Type = Type(name)
	d, ok := Lookup(h.key.Type)
	if !ok {
		c.fail(n, at, "unknown resource type %q%s", name, cmp.Or(insteadOf(name, doc), Suggestion(name, typeNames())))
		return
	}
	h.descriptor = d
}

func (h *header) readSpec(c *strict, n *node, at *fieldPath) {
	if n.kind != nullNode && c.want(n, objectNode, at) {
		h.spec = n
	}
}

func (h *header) readMetadata(c *strict, n *node, at *fieldPath) {
	if !c.want(n, objectNode, at) {
		return
	}
	for _, f := range n.fields {
		inside := at.field(f.name)
		switch {
		case slices.Contains(ignoredMetadata, f.name):
		case f.name == "name":
			h.key.Name = c.text(f.value, inside)
		case f.name == "namespace":
			h.key.Namespace = c.text(f.value, inside)
		case f.name == "labels":
			h.labels = c.labels(f.value, inside)
		default:
			c.failLine(f.line, inside, "unknown field%s",
				Suggestion(f.name, []string{"name", "namespace", "labels", "annotations"}))
		}
	}
}

// text reads a string. null is the same as absent.
func (c *strict) text(n *node, at *fieldPath) string {
	if n.kind == nullNode || !c.want(n, stringNode, at) {
		return ""
	}
	return n.text
}

func (c *strict) labels(n *node, at *fieldPath) map[string]string {
	if n.kind == nullNode || !c.want(n, objectNode, at) {
		return nil
	}
	if len(n.fields) > MaxLabels {
		c.fail(n, at, "has %d labels, more than %d", len(n.fields), MaxLabels)
		return nil
	}
	labels := make(map[string]string, len(n.fields))
	for _, f := range n.fields {
		if c.want(f.value, stringNode, at.field(f.name)) {
			labels[f.name] = f.value.text
		}
	}
	return labels
}

func (c *strict) required(doc *node, value, field string) {
	for _, p := range c.problems {
		if p.Field == field {
			return // already reported as the wrong kind
		}
	}
	if value == "" {
		c.problems = append(c.problems, FieldProblem{Field: field, Reason: "is required", Line: doc.line})
	}
}

func typeNames() []string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = string(table[i].Type)
	}
	return names
}
