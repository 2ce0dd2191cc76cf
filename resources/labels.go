package resources

import "maps"

// Labels that Causeway computes. If a user sets one to another value, validation fails with an error that names it.
// Source: Kuma's KDS labels.
const (
	LabelMesh        = "kuma.io/mesh"
	LabelOrigin      = "kuma.io/origin"
	LabelZone        = "kuma.io/zone"
	LabelDisplayName = "kuma.io/display-name"
	LabelPolicyRole  = "kuma.io/policy-role"
	LabelEnv         = "kuma.io/env"
	LabelNamespace   = "k8s.kuma.io/namespace"
)

// Labels in the reserved name spaces that users may set.
const (
	// LabelSync with the value SyncDisabled keeps a resource at home.
	LabelSync           = "kuma.io/kds-sync"
	LabelEffect         = "kuma.io/effect"
	LabelWorkload       = "kuma.io/workload"
	LabelServiceAccount = "k8s.kuma.io/service-account"
	// LabelManagedBy names the program that keeps a resource. Users may set it on what they write.
	LabelManagedBy = "kuma.io/managed-by"
)

// LabelRefused is on a ZoneInsight while the zone and its global refuse something of each other: an opaque value that
// changes whenever that does. Nobody else can set it.
const LabelRefused = "causeway.io/refused"

// ManagedByDiscovery is the value of LabelManagedBy on resources that a zone makes from its cluster's pods and
// Services.
const ManagedByDiscovery = "k8s-controller"

// carriedLabels are labels in the reserved name spaces that other control planes of the ecosystem compute and export.
// Causeway does not read them, so users may keep them. Source: Kuma's KDS labels.
var carriedLabels = []string{
	LabelManagedBy, "kuma.io/proxy-type", "kuma.io/sidecar-injection", "kuma.io/listener-zoneingress",
	"kuma.io/listener-zoneegress",
	LabelServiceName, LabelHeadless,
}

// Values of labels.
const (
	OriginGlobal = "global"
	OriginZone   = "zone"
	SyncEnabled  = "enabled"
	SyncDisabled = "disabled"
	EffectShadow = "shadow"
	EnvUniversal = "universal"
)

// DefaultSystemNamespace is the namespace of the system's own resources, unless a server is configured otherwise.
const DefaultSystemNamespace = "kuma-system"

// Home is the server that a resource is written on.
type Home struct {
	// Zone is the zone's name, or empty on the global.
	Zone string
	// Alone reports whether the zone has no global. Such a zone may also write resources that otherwise only the global
	// writes.
	Alone bool
	// SystemNamespace is DefaultSystemNamespace unless configured.
	SystemNamespace string
}

// Origin returns the value of LabelOrigin for resources written here.
func (h Home) Origin() string {
	if h.Zone == "" {
		return OriginGlobal
	}
	return OriginZone
}

// Owns reports whether r was written here, rather than copied from another server.
func (h Home) Owns(r *Resource) bool {
	origin, zone := h.originOf(r.Descriptor())
	return r.Zone() == zone && r.Labels[LabelOrigin] == origin
}

// Discovered reports whether this zone made r from a pod or a Service of its cluster. Users there write objects,
// whatever their labels.
func (h Home) Discovered(r *Resource) bool {
	ofCluster := r.Namespace != "" && (r.Type == TypeDataplane || r.Type == TypeMeshService) ||
		r.Namespace == "" && r.Type == TypeZoneIngress
	return ofCluster && r.Object.IsZero() && r.Labels[LabelManagedBy] == ManagedByDiscovery && h.Owns(r)
}

// originOf returns the origin and zone of resources of the type that are written here. Types that only the global
// writes have the global as their origin, even if a standalone zone writes them: once the zone joins, the global's
// resources apply.
func (h Home) originOf(d *Descriptor) (origin, zone string) {
	if h.Alone && d.WrittenOn == OnGlobal {
		return OriginGlobal, ""
	}
	return h.Origin(), h.Zone
}

// ComputedLabels returns the labels that a resource written at home must have. For policies they include the role.
func (h Home) ComputedLabels(r *Resource) map[string]string {
	origin, zone := h.originOf(r.Descriptor())
	labels := map[string]string{
		LabelOrigin:      origin,
		LabelDisplayName: r.Name,
		LabelEnv:         EnvUniversal,
	}
	if r.Mesh != "" {
		labels[LabelMesh] = r.Mesh
	}
	if zone != "" {
		labels[LabelZone] = zone
	}
	if r.Namespace != "" {
		labels[LabelNamespace] = r.Namespace
	}
	if r.Descriptor().Policy != nil {
		own := *r // the role depends on the computed labels, never on the user's
		own.Labels = labels
		labels[LabelPolicyRole] = string(RoleOf(&own, h.systemNamespace()))
	}
	return labels
}

// IsOperators reports whether a namespace belongs to the operator of this server: the system namespace, or none.
func (h Home) IsOperators(namespace string) bool {
	return namespace == "" || namespace == h.systemNamespace()
}

// OperatorsNamespace returns the system namespace.
func (h Home) OperatorsNamespace() string { return h.systemNamespace() }

func (h Home) systemNamespace() string {
	if h.SystemNamespace == "" {
		return DefaultSystemNamespace
	}
	return h.SystemNamespace
}

// Place removes the system namespace from a resource whose type has no namespace. Kubernetes keeps its objects there.
func (h Home) Place(r *Resource) {
	if r.Descriptor().Scope == ScopeGlobal && r.Namespace == h.systemNamespace() {
		r.Namespace = ""
	}
}

// Labelled returns a copy of r with its computed labels, as home stores it.
func (h Home) Labelled(r *Resource) *Resource {
	c := r.Clone()
	maps.Copy(c.Labels, h.ComputedLabels(r))
	return c
}

// MayWrite reports whether users may write resources of the type at home.
func (h Home) MayWrite(d *Descriptor) bool {
	switch {
	case d.WrittenOn == Nowhere:
		return false
	case h.Zone == "":
		return d.WrittenOn&OnGlobal != 0
	default:
		return h.Alone || d.WrittenOn&OnZone != 0
	}
}
