package resources

// Kinds of a TargetRef.
const (
	KindMesh                 = "Mesh"
	KindMeshSubset           = "MeshSubset"
	KindMeshGateway          = "MeshGateway"
	KindMeshService          = "MeshService"
	KindMeshServiceSubset    = "MeshServiceSubset"
	KindMeshExternalService  = "MeshExternalService"
	KindMeshMultiZoneService = "MeshMultiZoneService"
	KindMeshHTTPRoute        = "MeshHTTPRoute"
	KindMeshTCPRoute         = "MeshTCPRoute"
	KindDataplane            = "Dataplane"
)

// TargetRef refers to resources by name (and namespace) or by labels. An absent kind means Mesh.
type TargetRef struct {
	Kind        string            `json:"kind,omitempty"`
	Name        string            `json:"name,omitempty"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	Mesh        string            `json:"mesh,omitempty"`
	ProxyTypes  []string          `json:"proxyTypes,omitempty"`
	SectionName string            `json:"sectionName,omitempty"`
}

// KindOrMesh returns the kind. The kind of a nil or empty reference is Mesh.
func (t *TargetRef) KindOrMesh() string {
	if t == nil || t.Kind == "" {
		return KindMesh
	}
	return t.Kind
}

// BackendRef is a destination of a route.
type BackendRef struct {
	TargetRef
	// Weight is relative to the other references of the rule; absent means 1.
	Weight *uint32 `json:"weight,omitempty"`
	Port   uint32  `json:"port,omitempty"`
}

// ServiceKind returns the kind of the backend's service. A MeshServiceSubset is a part of one.
func (b *BackendRef) ServiceKind() string {
	if b.Kind == KindMeshServiceSubset {
		return KindMeshService
	}
	return b.KindOrMesh()
}

// Subset returns the tags that the backend's Dataplanes must have; nil means all of the service's.
func (b *BackendRef) Subset() map[string]string {
	if b.Kind == KindMeshServiceSubset {
		return b.Tags
	}
	return nil
}
