package matching

import (
	"encoding/json"
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// effectShadow is the value of resources.LabelEffect that keeps a policy from being enforced.
const effectShadow = "shadow"

// Policy is one policy, read for matching: its reach, its place in the order and, for a MeshTrafficPermission, its
// rules. Making one decodes the spec, so callers keep it until the resource's revision changes. It is immutable.
type Policy struct {
	Resource *resources.Resource
	KRI      resources.KRI
	Role     resources.Role
	// Target is the top-level targetRef, never nil; its kind is Mesh if the policy has no targetRef.
	Target *resources.TargetRef

	// id is unique among all policies read in this process.
	id uint64
	// zone and namespace are the policy's home; zone is empty for a policy of the global.
	zone, namespace string
	// systemNamespace is where the reader keeps copies.
	systemNamespace string
	order           Order
	rules           []Rule
	// traffic holds the rules of a TrafficTarget, which has no others.
	traffic []trafficRule
	// allows counts what they allow.
	allows   int
	items    policyItems
	problems []Warning
}

// NewPolicy reads a policy; systemNamespace is the reader's own. It does not fail: a spec that does not decode yields a
// policy that closes the inbounds it may have been written for (see Rule.Closed), with the reason among its problems.
func NewPolicy(r *resources.Resource, systemNamespace string) *Policy {
	p := &Policy{
		Resource: r, KRI: resources.KRIOf(r), Role: resources.RoleOf(r, systemNamespace), Target: &resources.TargetRef{},
		zone: r.Zone(), namespace: r.HomeNamespace(), systemNamespace: systemNamespace, id: lastID.Add(1),
	}
	spec, err := resources.SpecAs[resources.Policy](r)
	switch {
	case err != nil:
		p.broken(err)
	default:
		p.read(spec)
	}
	p.order = OrderOf(p, nil)
	if err == nil {
		p.items = readItems(p, spec)
	}
	return p
}

// Owner returns the owner of the policy.
func (p *Policy) Owner() resources.Owner { return resources.OwnerOf(p.Resource, p.systemNamespace) }

func (p *Policy) read(spec *resources.Policy) {
	if spec.TargetRef != nil {
		p.Target = spec.TargetRef
	}
	if p.Resource.Type == resources.TypeMeshTrafficPermission {
		p.readPermissions(spec)
	}
}

// broken keeps the target of a spec that does not decode, if that part is valid. Otherwise the policy applies to
// everything that its home lets it reach, because it is unknown which part it should deny.
func (p *Policy) broken(err error) {
	var frame struct {
		TargetRef *resources.TargetRef `json:"targetRef"`
	}
	if json.Unmarshal(p.Resource.Spec.JSON(), &frame) == nil && frame.TargetRef != nil {
		p.Target = frame.TargetRef
	}
	p.close(0, fmt.Sprintf("the spec does not decode, so the policy denies everybody: %v", err))
}

// Enforced reports whether the policy takes effect. A policy labelled `kuma.io/effect: shadow` does not.
func (p *Policy) Enforced() bool { return p.Resource.Labels[resources.LabelEffect] != effectShadow }

// Receives reports whether the policy has items for inbound traffic.
func (p *Policy) Receives() bool { return len(p.items.rules)+len(p.items.from) > 0 }

// Sends reports whether the policy has items for outgoing traffic.
func (p *Policy) Sends() bool { return len(p.items.to) > 0 }

func (p *Policy) onlySends() bool { return p.Sends() && !p.Receives() }

// Problems returns the problems of the policy itself, independent of the proxies that it selects.
func (p *Policy) Problems() []Warning { return p.problems }

// Rules returns the policy's own permissions, in order. The result of its `from` lists depends on the inbound
// (Inbound). The caller must not change the slice.
func (p *Policy) Rules() []Rule { return p.rules }
