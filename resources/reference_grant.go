package resources

// MeshReferenceGrant lets routes of other owners send to services of the grant's own: what ReferenceGrant is in Gateway
// API. It is written where the services are owned: in their zone and namespace, or by the operator of the zone or of
// the mesh. Source: seed 004, "Cross namespace traffic forwarding and ReferenceGrant".
type MeshReferenceGrant struct {
	From []GrantFrom `json:"from"`
	To   []GrantTo   `json:"to"`
}

// GrantFrom names the routes that may send: those of one kind in a namespace of a zone. If Zone is absent, it is the
// grant's zone.
type GrantFrom struct {
	Kind      string `json:"kind"`
	Zone      string `json:"zone,omitempty"`
	Namespace string `json:"namespace"`
}

// GrantTo names the services that the routes may send to: services of one kind, which are all of them, one by its
// display name, or those with given labels. Zone and Namespace default to the grant's own. Only operators may give
// other values.
type GrantTo struct {
	Kind      string            `json:"kind"`
	Zone      string            `json:"zone,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// Owner identifies the owner of a resource: a zone, empty for the global, and a namespace, empty for resources of that
// server's operator.
type Owner struct{ Zone, Namespace string }

// OwnerOf returns the owner of r, from its labels. The operator owns resources in the system namespace, and resources
// of types that can be in no other namespace.
func OwnerOf(r *Resource, systemNamespace string) Owner {
	o := Owner{Zone: r.Zone(), Namespace: r.HomeNamespace()}
	if o.Namespace == systemNamespaceOf(r, systemNamespace) || systemOnly(r.Descriptor()) {
		o.Namespace = ""
	}
	return o
}

// IsOperator reports whether the owner is the operator of a zone or of the mesh. An operator acts for all its
// namespaces.
func (o Owner) IsOperator() bool { return o.Namespace == "" }

// IsGlobal reports whether the owner is the operator of the mesh.
func (o Owner) IsGlobal() bool { return o.Zone == "" }

// Covers reports whether the item, in a grant of the given owner, includes the routes of a kind and owner.
func (f *GrantFrom) Covers(grant Owner, kind string, route Owner) bool {
	zone := f.Zone
	if zone == "" {
		zone = grant.Zone
	}
	return zone != "" && f.Kind == kind && zone == route.Zone && f.Namespace == route.Namespace && f.Namespace != ""
}

// Covers reports whether the item, in a grant of the given owner, includes service. An item that exceeds the authority
// of the grant's owner includes nothing, even if it was stored.
func (t *GrantTo) Covers(grant Owner, service *Resource, systemNamespace string) bool {
	home := t.home(grant)
	if home.Zone != grant.Zone && !grant.IsGlobal() || !grant.IsOperator() && home != grant || grant.IsGlobal() &&
		!grant.IsOperator() {
		return false
	}
	if t.Kind != string(service.Type) || service.Zone() != home.Zone ||
		!ownedIn(home.Namespace, service, systemNamespace) {
		return false
	}
	if t.Name != "" && t.Name != service.DisplayName() {
		return false
	}
	for k, v := range t.Labels {
		if got, ok := service.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// home returns the owner of the services that the item includes, with the namespace as it is written.
func (t *GrantTo) home(grant Owner) Owner {
	home := grant
	if t.Zone != "" {
		home.Zone = t.Zone
		if t.Zone != grant.Zone {
			home.Namespace = ""
		}
	}
	if t.Namespace != "" {
		home.Namespace = t.Namespace
	}
	return home
}

// ownedIn reports whether the service is in a namespace of its zone, or is the operator's if namespace is empty.
// Services of types that live with the system are the operator's in whichever namespace.
func ownedIn(namespace string, service *Resource, systemNamespace string) bool {
	switch owner := OwnerOf(service, systemNamespace); {
	case owner.Namespace == namespace:
		return true
	case !owner.IsOperator():
		return false
	case systemOnly(service.Descriptor()) || service.HomeNamespace() == "":
		return namespace == systemNamespace
	}
	return namespace == service.HomeNamespace()
}
