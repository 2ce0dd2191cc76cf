package resources

import "encoding/json"

// Explicit returns r with the defaults of its spec written out for matching: `spec.default` becomes one item of rules.
// An empty reference becomes Mesh or, in a policy that reaches only its own zone and namespace, those proxies. An empty
// namespace in `to` becomes the policy's own. Resources that are not policies are returned unchanged. The stored form
// stays as the user wrote it. Source: seed 004, "Sugar".
func Explicit(r *Resource, systemNamespace string) (*Resource, error) {
	shape := r.Descriptor().Policy
	if shape == nil {
		return r, nil
	}
	stored, err := SpecAs[Policy](r)
	if err != nil {
		return nil, err
	}
	role := RoleOf(r, systemNamespace)
	p := *stored
	p.TargetRef = explicitTarget(p.TargetRef, r, role)
	if shape.Rules {
		p.Rules, p.Default = p.EffectiveRules(), json.RawMessage(nil)
	}
	var namespaces *implied
	if role != RoleSystem && !r.isCopy() { // a system policy's names match any namespace; a copy's are already resolved
		namespaces = &implied{own: r.HomeNamespace(), system: systemNamespace}
	}
	p.To = explicitTo(p.To, namespaces)
	p.From = make([]PolicyFrom, len(stored.From))
	for i, from := range stored.From {
		from.TargetRef.Kind = from.TargetRef.KindOrMesh()
		p.From[i] = from
	}
	spec, err := NewSpecOf(r.Type, &p)
	if err != nil {
		return nil, err
	}
	c := r.Clone()
	c.Spec = spec
	return c, nil
}

// explicitTarget writes out the top-level reference.
func explicitTarget(ref *TargetRef, r *Resource, role Role) *TargetRef {
	if ref.KindOrMesh() != KindMesh || role == RoleSystem || role == RoleProducer {
		out := TargetRef{}
		if ref != nil {
			out = *ref
		}
		out.Kind = ref.KindOrMesh()
		return &out
	}
	own := map[string]string{LabelNamespace: r.HomeNamespace()}
	if zone := r.Zone(); zone != "" {
		own[LabelZone] = zone
	}
	if ref != nil && len(ref.ProxyTypes) > 0 { // only Mesh and MeshSubset may have proxyTypes
		return &TargetRef{Kind: KindMeshSubset, Tags: own, ProxyTypes: ref.ProxyTypes}
	}
	return &TargetRef{Kind: KindDataplane, Labels: own}
}

// explicitTo writes out the references of `to`. If namespaces is nil, it leaves their names unchanged.
func explicitTo(stored []PolicyTo, namespaces *implied) []PolicyTo {
	out := make([]PolicyTo, len(stored))
	for i, to := range stored {
		ref := &to.TargetRef
		ref.Kind = ref.KindOrMesh()
		if namespaces != nil && ref.Name != "" && ref.Namespace == "" {
			ref.Namespace = namespaces.of(ref.Kind)
		}
		out[i] = to
	}
	return out
}

// implied holds the namespaces that a name without a namespace refers to.
type implied struct{ own, system string }

// of returns the implied namespace of a kind. A MeshExternalService lives in the system namespace only.
func (n *implied) of(kind string) string {
	if kind == KindMeshExternalService {
		return n.system
	}
	return n.own
}
