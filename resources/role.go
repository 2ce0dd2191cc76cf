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
// A policy without a namespace, in the system namespace, or of the global is a system policy. Each item of `to` counts by
// the namespace it refers to (its own where it names none; the label LabelNamespace for references by labels); Mesh and
// MeshExternalService are consumer references, always. Mixed items, which validation refuses, read as consumer: the role
// that reaches less.
func RoleOf(r *Resource, systemNamespace string) Role {
	ns := r.HomeNamespace()
	if ns == "" || ns == systemNamespace || r.Labels[LabelOrigin] == OriginGlobal && r.Zone() == "" {
		return RoleSystem
	}
	if r.isCopy() {
		switch role := Role(r.Labels[LabelPolicyRole]); role {
		case RoleProducer, RoleConsumer, RoleWorkloadOwner:
			return role
		}
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
