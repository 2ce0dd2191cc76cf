package resources

// Role says whose intent a policy is, and with that how far it reaches.
type Role string

// The roles of seed 004, "Producers and consumers", ascending in specificity.
const (
	RoleSystem        Role = "system"
	RoleProducer      Role = "producer"
	RoleConsumer      Role = "consumer"
	RoleWorkloadOwner Role = "workload-owner"
)

// RoleOf computes the role of a policy from its spec and its home namespace. At home its label is never believed. A copy's
// references are rewritten to names in the namespace of copies and no longer say whose they are, so its label counts
// there: the receiver computes it on arrival, before it rewrites (design, section 2).
// Which namespace is the system's is a matter of each server: a copy's role is never judged by the receiver's.
// A policy without a namespace, in the system namespace of its home, or of the global is a system policy. Each item of `to` counts by
// the namespace it refers to (its own where it names none; the label LabelNamespace for references by labels); Mesh and
// MeshExternalService are consumer references, always. Mixed items, which validation refuses, read as consumer: the role
// that reaches less.
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

// noNamespace is the system namespace of a server that has another one, which is not known, than all that are named.
const noNamespace = "the system namespace"

// systemNamespaceOf is by which name r's home calls the system's namespace, as far as it matters for reading r: own, unless r is a copy whose
// role says something else.
func systemNamespaceOf(r *Resource, own string) string {
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
