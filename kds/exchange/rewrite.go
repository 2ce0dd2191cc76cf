package exchange

import (
	"encoding/json"

	"github.com/causeway-mesh/causeway/resources"
)

// labelDeletionGrace marks a proxy that is being deleted in a zone; it is of no use elsewhere.
const labelDeletionGrace = "kuma.io/deletion-grace-period-started-at"

// outboundStep is one change to a resource before it is encoded. The step may change r.
type outboundStep struct {
	name  string
	apply func(r *resources.Resource, a *Audience) error
}

// inboundStep is one change to a resource that arrived, before it is stored. The step may change r.
type inboundStep struct {
	name  string
	apply func(r *resources.Resource, here *Arrival) error
}

// Arrival describes the server on which a resource arrives.
type Arrival struct {
	Origin
	// SystemNamespace decides roles: it is the sending zone's on the global, and the receiver's own in a zone.
	// OwnNamespace is the receiver's own, in which copies live: the store keeps them without a namespace.
	SystemNamespace, OwnNamespace string
	// Lookup reads this server's store; used on the global only.
	Lookup Lookup
}

// Mapping rewrites resources on the way out and on the way in. It has no state and is safe for concurrent use.
type Mapping struct {
	outbound [2][]outboundStep
	inbound  [2][]inboundStep
	accept   []acceptRule
}

// NewMapping returns the mapping of both directions.
func NewMapping() *Mapping {
	m := &Mapping{accept: acceptRules()}
	m.outbound[GlobalToZone] = outboundToZone()
	m.outbound[ZoneToGlobal] = outboundToGlobal()
	m.inbound[GlobalToZone] = inboundInZone()
	m.inbound[ZoneToGlobal] = inboundOnGlobal()
	return m
}

// Outbound returns r as the audience gets it, with its name on the wire. It depends on the audience's direction,
// features and, in a zone, on the zone's name; never on which zone receives. The error wraps errNotSayable if r has no
// form that the peer knows.
func (m *Mapping) Outbound(r *resources.Resource, a *Audience) (*resources.Resource, error) {
	out := r.Clone()
	for i := range m.outbound[a.Direction] {
		if err := m.outbound[a.Direction][i].apply(out, a); err != nil {
			return nil, err
		}
	}
	out.Namespace = ""
	return out, nil
}

// Inbound returns the resource to store for r, or the reason why r is refused.
func (m *Mapping) Inbound(r *resources.Resource, here *Arrival) (*resources.Resource, error) {
	for i := range m.accept {
		if err := m.accept[i].refuse(r, &here.Origin); err != nil {
			return nil, err
		}
	}
	r = r.Clone()
	for i := range m.inbound[here.Direction] {
		if err := m.inbound[here.Direction][i].apply(r, here); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// outboundToZone returns the steps from global to zone. Source: Kuma's wire format, "Global → zone", mappers; seed 004.
func outboundToZone() []outboundStep {
	return []outboundStep{
		{"says-origin-global", setLabel(resources.LabelOrigin, func(*Audience) string { return resources.OriginGlobal })},
		{"namespace-in-label", keepNamespace},
		{"display-name-in-label", keepDisplayName},
		{"status-is-zero", func(r *resources.Resource, _ *Audience) error {
			r.Status = nil
			if r.Descriptor().HasStatus {
				r.Status = zeroStatus(r.Type)
			}
			return nil
		}},
		{"references-as-written", func(r *resources.Resource, a *Audience) error {
			if a.Features.Has(FeatureResolvedReferences) {
				return nil
			}
			return restoreReferences(r)
		}},
		{"plain-words", plainWords},
		{"zones-as-label", zonesAsLabel},
		{"ingress-says-its-zone", func(r *resources.Resource, _ *Audience) error { return sayZone(r, r.Zone()) }},
		{"owner-for-who-reads-it", func(r *resources.Resource, a *Audience) error {
			if r.Descriptor().Policy == nil && !a.Features.Has(FeatureOwners) {
				delete(r.Labels, resources.LabelPolicyRole)
			}
			return nil
		}},
		{"name-is-hashed", hashName},
	}
}

// outboundToGlobal returns the steps from zone to global. Source: Kuma's wire format, "Zone → global", mappers.
func outboundToGlobal() []outboundStep {
	return []outboundStep{
		{"says-origin-zone", setLabel(resources.LabelOrigin, func(*Audience) string { return resources.OriginZone })},
		{"says-which-zone", setLabel(resources.LabelZone, func(a *Audience) string { return a.Zone })},
		{"grace-period-stays-here", func(r *resources.Resource, _ *Audience) error {
			delete(r.Labels, labelDeletionGrace)
			return nil
		}},
		{"namespace-in-label", keepNamespace},
		{"display-name-in-label", keepDisplayName},
		{"status-is-sent", func(r *resources.Resource, _ *Audience) error {
			if r.Descriptor().HasStatus && r.Status == nil {
				r.Status = zeroStatus(r.Type)
			}
			return nil
		}},
		{"plain-words", plainWords},
		{"name-is-hashed", hashName},
	}
}

// inboundOnGlobal returns the steps on the global. Source: docs/reliability.md, promise 10; docs/concepts.md, "Who sees
// what"; Kuma's wire format, "Receiver side".
func inboundOnGlobal() []inboundStep {
	return []inboundStep{
		{"zone-is-pinned", func(r *resources.Resource, here *Arrival) error {
			r.Labels[resources.LabelZone] = here.Zone
			return nil
		}},
		{"origin-is-pinned", func(r *resources.Resource, _ *Arrival) error {
			r.Labels[resources.LabelOrigin] = resources.OriginZone
			return nil
		}},
		{"mesh-is-computed", computeMesh},
		{"written-references-are-ours", func(r *resources.Resource, _ *Arrival) error {
			delete(r.Labels, resources.LabelReferences)
			return nil
		}},
		{"role-is-computed", computeRole},
		{"references-are-resolved", resolveReferences},
		{"dataplane-tags-are-pinned", pinDataplaneTags},
		{"ingress-says-its-zone", func(r *resources.Resource, here *Arrival) error { return sayZone(r, here.Zone) }},
	}
}

// inboundInZone returns the steps in a zone. Source: docs/concepts.md, "Who sees what"; seed 004, "Implementation".
func inboundInZone() []inboundStep {
	return []inboundStep{
		{"origin-is-global", func(r *resources.Resource, _ *Arrival) error {
			r.Labels[resources.LabelOrigin] = resources.OriginGlobal
			return nil
		}},
		{"mesh-is-computed", computeMesh},
		{"role-is-computed", computeRole},
		{"references-follow-copies", func(r *resources.Resource, here *Arrival) error {
			return settleReferences(r, here.OwnNamespace)
		}},
	}
}

func setLabel(label string, value func(*Audience) string) func(*resources.Resource, *Audience) error {
	return func(r *resources.Resource, a *Audience) error {
		r.Labels[label] = value(a)
		return nil
	}
}

// keepNamespace puts the namespace into a label, since the wire has none. A copy keeps its label: its own namespace is
// not the original's.
func keepNamespace(r *resources.Resource, _ *Audience) error {
	if ns, ok := namespaceLabel(r); ok {
		r.Labels[resources.LabelNamespace] = ns
	}
	return nil
}

func keepDisplayName(r *resources.Resource, _ *Audience) error {
	r.Labels[resources.LabelDisplayName] = r.DisplayName()
	return nil
}

func computeMesh(r *resources.Resource, _ *Arrival) error {
	delete(r.Labels, resources.LabelMesh)
	if r.Mesh != "" {
		r.Labels[resources.LabelMesh] = r.Mesh
	}
	return nil
}

// computeRole computes the role from the references as they were written: resolved ones all have the namespace of
// copies. The name of the origin zone's system namespace decides whether a namespace is the system's; what another zone
// sends down to us is never the system's here. For a type that is not a policy, the role only tells resources of the
// zone's operator from others. The global computes that, and zones keep it: they do not know the names of other zones'
// system namespaces.
func computeRole(r *resources.Resource, here *Arrival) error {
	system := here.SystemNamespace
	if here.Direction == GlobalToZone && r.Zone() != "" {
		system = ""
	}
	switch d := r.Descriptor(); {
	case d.Policy != nil:
	case !d.HasOwner() || r.Zone() == "":
		delete(r.Labels, resources.LabelPolicyRole)
		return nil
	case here.Direction == GlobalToZone:
		return nil
	}
	delete(r.Labels, resources.LabelPolicyRole)
	written := r
	if _, resolved := r.Labels[resources.LabelReferences]; resolved {
		written = r.Clone()
		if err := restoreReferences(written); err != nil {
			return err
		}
	}
	r.Labels[resources.LabelPolicyRole] = string(resources.RoleOf(written, system))
	return nil
}

// zeroStatus returns the status that a zone is sent: the zero value of the type's. Source: Kuma's wire format, "Any
// rules".
func zeroStatus(t resources.Type) json.RawMessage {
	if t == resources.TypeMeshService {
		return json.RawMessage(`{"tls":{},"dataplaneProxies":{}}`)
	}
	return json.RawMessage(`{}`)
}
