package resources

import "cmp"

// Role identifies whose intent a policy expresses, and thereby how far the policy reaches.
type Role string

// The roles of seed 004, "Producers and consumers", in ascending order of specificity.
const (
	RoleSystem        Role = "system"
	RoleProducer      Role = "producer"
	RoleConsumer      Role = "consumer"
	RoleWorkloadOwner Role = "workload-owner"
)

// RoleOf computes the role of a policy from its spec and its home namespace. At home it ignores the role label. In a
// copy, references are rewritten to names in the namespace of copies and no longer identify the owner, so the copy's
// label counts: the receiver computes it on arrival, before it rewrites the references. Each server chooses its own
// system namespace, so RoleOf never applies the receiver's to a copy.
//
// A policy is a system policy if it has no namespace, is in the system namespace of its home, or comes from the global.
// Otherwise each item of `to` counts by the namespace that it refers to: the policy's own if it names none, or
// LabelNamespace for references by labels. Mesh and MeshExternalService are always consumer references. If items
// differ, which validation refuses, the role is consumer, the one that reaches less.
func RoleOf(r *Resource, systemNamespace string) Role {
	ns := r.HomeNamespace()
	if ns == "" || r.Labels[LabelOrigin] == OriginGlobal && r.Zone() == "" {
		return RoleSystem
	}
	if r.isCopy() {
		switch role := Role(r.Labels[LabelPolicyRole]); role {
		case RoleSystem, RoleProducer, RoleConsumer, RoleWorkloadOwner:
			return role
		}
	}
	if ns == systemNamespace {
		return RoleSystem
	}
	p, err := SpecAs[Policy](r)
	if err != nil || len(p.To) == 0 {
		return RoleWorkloadOwner
	}
	for i := range p.To {
		if !producerReference(&p.To[i].TargetRef, ns) {
			return RoleConsumer
		}
	}
	return RoleProducer
}

// noNamespace stands for the system namespace of a server that uses another name than the known ones. The name itself
// is unknown.
const noNamespace = "the system namespace"

// systemNamespaceOf returns the name of the system namespace at r's home, as far as it matters for reading r. It is
// own, unless r is a copy that contradicts that. A global has no other namespace, so what it wrote itself names it. All
// copies of what a zone wrote that has an owner carry a role, except for those that came by a server that computes
// none.
func systemNamespaceOf(r *Resource, own string) string {
	if r.ofGlobal() {
		return cmp.Or(r.HomeNamespace(), own)
	}
	if !r.isCopy() || r.Zone() == "" {
		return own
	}
	switch ns := r.HomeNamespace(); Role(r.Labels[LabelPolicyRole]) {
	case RoleSystem:
		if ns != "" {
			return ns
		}
	case RoleProducer, RoleConsumer, RoleWorkloadOwner:
		if ns == own {
			return noNamespace
		}
	}
	return own
}

// ofGlobal reports whether r is a copy of what the operator of the mesh wrote, on the global. Resources of the Service
// Mesh Interface may be in any namespace there, which is that of the service accounts they name.
func (r *Resource) ofGlobal() bool {
	return r.isCopy() && r.Zone() == "" && r.Labels[LabelOrigin] == OriginGlobal && !isSMI(r.Type)
}

// producerReference reports whether ref stays in the policy's own namespace.
func producerReference(ref *TargetRef, ns string) bool {
	switch ref.KindOrMesh() {
	case KindMesh, KindMeshExternalService:
		return false
	}
	if len(ref.Labels) > 0 {
		return ref.Labels[LabelNamespace] == ns
	}
	return ref.Namespace == "" || ref.Namespace == ns
}
