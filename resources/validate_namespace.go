package resources

import "slices"

// The rules for resources in a namespace other than the system namespace, and for policies in one, whoever sends them.
// Source: seed 004, "Validation", "Namespace-scoped policies and multizone" and "Referencing MeshGateway".

// customNamespace returns the resource's namespace at home, or "" if it has none or is in the system namespace.
func (v *validation) customNamespace() string {
	ns := v.resource.Namespace
	if v.peer {
		ns = v.resource.HomeNamespace()
	}
	if ns != v.home.systemNamespace() {
		return ns
	}
	return ""
}

// owner returns the owner of the resource.
func (v *validation) owner() Owner { return Owner{Zone: v.home.Zone, Namespace: v.customNamespace()} }

// namespaceHolds checks that resources of the type may be in the resource's namespace on this server.
func (v *validation) namespaceHolds() {
	d := v.resource.Descriptor()
	if d.Scope == ScopeGlobal || v.customNamespace() == "" {
		return
	}
	system := v.home.systemNamespace()
	switch {
	case v.judgedByGlobal():
	case systemOnly(d):
		v.fail(top("namespace"), "a %s lives in the system namespace only: use %s, or leave it out", d.Type, system)
	case v.home.Zone == "" && !isSMI(d.Type):
		v.fail(top("namespace"), "the global has no namespaces but %s: use that, leave it out, or write the resource to the API of the zone that has the namespace", system)
	}
}

// systemOnly reports whether resources of the type affect the whole mesh or the whole zone, and so belong to the
// operator. The owner of one namespace may not decide which authorities everyone trusts, the identities of Dataplanes,
// what traffic enters the mesh, or what services are outside it.
func systemOnly(d *Descriptor) bool {
	switch d.Type {
	case TypeMeshExternalService, TypeMeshGateway, TypeMeshIdentity, TypeMeshTrust:
		return true
	}
	return d.WrittenOn == OnGlobal
}

// Misplaced reports whether r, a resource of this server's own, is in a namespace that its type does not allow. No
// write creates one; an earlier version may have.
func (h Home) Misplaced(r *Resource) bool {
	return h.Owns(r) && systemOnly(r.Descriptor()) && r.Namespace != "" && r.Namespace != h.systemNamespace()
}

// MisplacedCopy reports whether r, the global's copy of a zone's resource, is in a namespace of the zone that its type
// does not allow. The global accepts none, but earlier versions did, without recording a role. For copies without a
// role, only the usual name counts as the system namespace.
func MisplacedCopy(r *Resource) bool {
	if r.Zone() == "" || !systemOnly(r.Descriptor()) || r.HomeNamespace() == "" {
		return false
	}
	if role := Role(r.Labels[LabelPolicyRole]); role != "" {
		return role != RoleSystem
	}
	return r.HomeNamespace() != DefaultSystemNamespace
}

// judgedByGlobal reports whether the global has already checked the namespace. A MeshTrust of one zone reaches another
// through the global, which knows the name of that zone's system namespace; this server does not. No other type of the
// system namespace crosses zones, except for policies, which carry their role.
func (v *validation) judgedByGlobal() bool {
	return v.resource.Type == TypeMeshTrust && v.resource.isCopy() && v.resource.Zone() != "" &&
		v.resource.Labels[LabelOrigin] == OriginGlobal
}

// namespacedPolicy checks the contents of a policy in a custom namespace.
func (v *validation) namespacedPolicy(p *Policy, spec *fieldPath) {
	ns := v.customNamespace()
	if ns == "" {
		return
	}
	if len(p.From) > 0 && len(p.To) > 0 {
		v.fail(spec.field("from"),
			"cannot be combined with to in the namespace %s: make two policies, one with from and one with to", ns)
	}
	v.oneSideOnly(p.To, ns, spec)
	if p.TargetRef.KindOrMesh() == KindMeshGateway {
		v.namespacedGateway(p, ns, spec)
	}
}

// oneSideOnly checks that either all items of `to` refer to the policy's own namespace, or none do, so that the policy
// has one role.
func (v *validation) oneSideOnly(items []PolicyTo, ns string, spec *fieldPath) {
	if len(items) == 0 {
		return
	}
	first := producerReference(&items[0].TargetRef, ns)
	for i := range items {
		ref := &items[i].TargetRef
		own := producerReference(ref, ns)
		if own == first {
			continue
		}
		is, others := "outside", "in"
		if own {
			is, others = "in", "outside"
		}
		v.fail(sideField(ref, spec.field("to").item(i).field("targetRef")),
			"is %s the policy's own namespace %s, and spec.to[0] is %s it: a policy is a producer's, with all of to in its namespace, or a consumer's, with nothing of it there: make two policies",
			is, ns, others)
	}
}

// sideField returns the field that decides whether a reference is in the policy's own namespace.
func sideField(ref *TargetRef, at *fieldPath) *fieldPath {
	switch kind := ref.KindOrMesh(); {
	case kind == KindMesh || kind == KindMeshExternalService:
		return at.field("kind")
	case len(ref.Labels) > 0:
		return at.field("labels").field(LabelNamespace)
	}
	return at.field("namespace")
}

// clusterPolicies are the policy types whose `to` configures only clusters.
var clusterPolicies = []Type{TypeMeshCircuitBreaker, TypeMeshHealthCheck}

// namespacedGateway checks a policy for a MeshGateway. A MeshGateway belongs to no namespace, so a policy in a
// namespace may only configure how the gateway reaches services of that namespace.
func (v *validation) namespacedGateway(p *Policy, ns string, spec *fieldPath) {
	at, system := spec.field("targetRef").field("kind"), v.home.systemNamespace()
	if v.resource.Descriptor().Policy.Route {
		v.fail(at, "a %s for a MeshGateway decides what enters the mesh and lives in the system namespace: write it in %s, or target the proxies of %s by Mesh or Dataplane", v.resource.Type, system, ns)
		v.namespacedBackends(p, ns)
		return
	}
	if !slices.Contains(clusterPolicies, v.resource.Type) || len(p.To) == 0 {
		v.fail(at, "a policy in the namespace %s may target a MeshGateway only to configure clusters, which the to of MeshCircuitBreaker and MeshHealthCheck does: write it in %s, or name one of the gateway's routes in to", ns, system)
	}
	if len(p.To) > 0 &&
		!slices.ContainsFunc(p.To, func(to PolicyTo) bool { return producerReference(&to.TargetRef, ns) }) {
		v.fail(at, "a consumer policy cannot target a MeshGateway, which belongs to no namespace: refer in to to services of %s, or write the policy in %s", ns, system)
	}
}

// namespacedBackends checks that a route in a namespace leads only to that namespace.
func (v *validation) namespacedBackends(p *Policy, ns string) {
	eachBackendOf(p, func(ref *BackendRef, at *fieldPath) { v.ownBackend(ref, ns, at) })
}

func (v *validation) ownBackend(ref *BackendRef, ns string, at *fieldPath) {
	if !producerReference(&ref.TargetRef, ns) {
		v.fail(sideField(&ref.TargetRef, at), "under a MeshGateway a route leads to its own namespace only: refer to a service of %s, or write the route in %s", ns, v.home.systemNamespace())
	}
}
