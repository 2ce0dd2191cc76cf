package exchange

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// Direction is the direction in which resources travel on a stream.
type Direction uint8

// The two streams of a session.
const (
	GlobalToZone Direction = iota
	ZoneToGlobal
)

// String returns the direction's name in logs and status.
func (d Direction) String() string {
	if d == ZoneToGlobal {
		return "zone-to-global"
	}
	return "global-to-zone"
}

// Label returns the direction's name in answers and metrics.
func (d Direction) Label() string {
	if d == GlobalToZone {
		return "toZone"
	}
	return "toGlobal"
}

// Carries reports whether resources of type t travel in this direction at all.
func (d Direction) Carries(t *resources.Descriptor) bool {
	if d == ZoneToGlobal {
		return t.ZoneToGlobal
	}
	return t.GlobalToZone || t.AcrossZones
}

// Audience is the receiver of a resource, and the direction of its stream.
type Audience struct {
	Direction Direction
	// Zone is the zone of the stream, in either direction.
	Zone string
	// Features are the receiver's.
	Features Features
	// Enabled reports whether a zone takes part; nil means that all do. An unregistered zone counts as enabled.
	Enabled func(zone string) bool
}

func (a *Audience) enabled(zone string) bool { return a.Enabled == nil || a.Enabled(zone) }

// filterRule is one reason why a resource does not cross.
type filterRule struct {
	// name is the rule's name in the table tests, and in answers to "why is it not there?".
	name string
	// stops reports whether the rule keeps r from the audience.
	stops func(r *resources.Resource, a *Audience) bool
}

// globalToZoneRules returns the rules that keep resources from a zone. Sources: docs/concepts.md, "Who sees what";
// Kuma's wire format, "Global → zone"; seed 004, "Namespace-scoped policies and multizone".
func globalToZoneRules() []filterRule {
	return []filterRule{
		{"type-stays-on-global", func(r *resources.Resource, _ *Audience) bool {
			return r.Zone() == "" && !r.Descriptor().GlobalToZone
		}},
		{"type-stays-in-its-zone", func(r *resources.Resource, _ *Audience) bool {
			return r.Zone() != "" && !r.Descriptor().AcrossZones
		}},
		{"not-of-its-zones-system", func(r *resources.Resource, _ *Audience) bool { return resources.MisplacedCopy(r) }},
		{"sync-disabled", syncDisabled},
		{"back-to-its-zone", func(r *resources.Resource, a *Audience) bool { return r.Zone() == a.Zone }},
		{"receiver-disabled", func(_ *resources.Resource, a *Audience) bool { return !a.enabled(a.Zone) }},
		{"origin-zone-disabled", func(r *resources.Resource, a *Audience) bool {
			return r.Zone() != "" && !a.enabled(r.Zone())
		}},
		{"only-producers-cross", func(r *resources.Resource, _ *Audience) bool {
			return foreignPolicy(r) && r.Labels[resources.LabelPolicyRole] != string(resources.RoleProducer)
		}},
		{"target-names-another-zone", func(r *resources.Resource, a *Audience) bool {
			zone := targetZone(r)
			return foreignPolicy(r) && zone != "" && zone != a.Zone
		}},
		{"peer-takes-no-producers", func(r *resources.Resource, a *Audience) bool {
			return foreignPolicy(r) && !a.Features.Has(FeatureProducerPolicies)
		}},
		{"peer-knows-no-grants", func(r *resources.Resource, a *Audience) bool {
			return !a.Features.Has(FeatureReferenceGrants) && foreignPolicy(r) && resources.SendsElsewhere(r)
		}},
		{"peer-needs-target", func(r *resources.Resource, a *Audience) bool {
			return !a.Features.Has(FeatureOptionalTargetRef) && withoutTarget(r)
		}},
	}
}

// zoneToGlobalRules returns the rules that keep resources in their zone. Source: Kuma's wire format, "Zone → global".
func zoneToGlobalRules() []filterRule {
	return []filterRule{
		{"type-stays-in-zone", func(r *resources.Resource, _ *Audience) bool { return !r.Descriptor().ZoneToGlobal }},
		{"only-what-originates-here", func(r *resources.Resource, a *Audience) bool {
			return r.Labels[resources.LabelOrigin] == resources.OriginGlobal || r.Zone() != "" && r.Zone() != a.Zone
		}},
		{"sync-disabled", syncDisabled},
	}
}

// Filter decides which resources cross. It has no state and is safe for concurrent use.
type Filter struct {
	rules [2][]filterRule
}

// NewFilter returns the rules of both directions.
func NewFilter() *Filter {
	c := &Filter{}
	c.rules[GlobalToZone] = globalToZoneRules()
	c.rules[ZoneToGlobal] = zoneToGlobalRules()
	return c
}

// Stops returns the name of the first rule that keeps r from the audience, or "" if r crosses.
func (c *Filter) Stops(r *resources.Resource, a *Audience) string {
	for i := range c.rules[a.Direction] {
		if rule := &c.rules[a.Direction][i]; rule.stops(r, a) {
			return rule.name
		}
	}
	return ""
}

// SameForAll reports whether the rules decide the same about r for all zones that take part and have the same features:
// only a zone's resources go to some zones and not to others.
func (c *Filter) SameForAll(r *resources.Resource, d Direction) bool {
	return d == GlobalToZone && (r.Zone() == "" || !r.Descriptor().AcrossZones)
}

func syncDisabled(r *resources.Resource, _ *Audience) bool {
	return r.Labels[resources.LabelSync] == resources.SyncDisabled
}

// foreignPolicy reports whether r is a policy of a zone, seen from the global: one that has the zone's label.
func foreignPolicy(r *resources.Resource) bool {
	return r.Zone() != "" && r.Descriptor().Policy != nil
}

// targetZone returns the zone that a policy's target names, by tag or by label, or "".
func targetZone(r *resources.Resource) string {
	p, err := policyOf(r)
	if err != nil || p == nil || p.TargetRef == nil {
		return ""
	}
	if zone := p.TargetRef.Tags[resources.LabelZone]; zone != "" {
		return zone
	}
	return p.TargetRef.Labels[resources.LabelZone]
}

func withoutTarget(r *resources.Resource) bool {
	p, err := policyOf(r)
	return err == nil && p != nil && p.TargetRef == nil
}

// policyOf returns the policy in r, or nil if r is not one.
func policyOf(r *resources.Resource) (*resources.Policy, error) {
	if r.Descriptor().Policy == nil {
		return nil, nil
	}
	return resources.SpecAs[resources.Policy](r)
}

// acceptRule is one reason for which a resource is refused by name on arrival.
type acceptRule struct {
	name   string
	refuse func(r *resources.Resource, from *Origin) error
}

// Origin is where a resource arrives from: the direction and the zone of its stream.
type Origin struct {
	Direction Direction
	// Zone is the authenticated zone on the global, and the receiving zone itself in a zone.
	Zone string
}

// acceptRules returns the rules by which both sides refuse a peer's resources.
func acceptRules() []acceptRule {
	return []acceptRule{
		{"type-never-travels-here", func(r *resources.Resource, from *Origin) error {
			if from.Direction.Carries(r.Descriptor()) {
				return nil
			}
			return fmt.Errorf("a %s does not travel %s", r.Type, from.Direction)
		}},
		{"own-zone-comes-back", func(r *resources.Resource, from *Origin) error {
			if from.Direction == GlobalToZone && r.Zone() == from.Zone {
				return fmt.Errorf("it says that zone %s, this one, wrote it", from.Zone)
			}
			return nil
		}},
		{"name-is-not-its-hash", func(r *resources.Resource, from *Origin) error {
			if from.Direction == GlobalToZone {
				return nil
			}
			if want := NameInZone(r, from.Zone); r.Name != want {
				return fmt.Errorf("its name does not match its owner: what zone %s calls %q is named %q here",
					from.Zone, r.DisplayName(), want)
			}
			return nil
		}},
		{"unknown-fields-in-permission", func(r *resources.Resource, _ *Origin) error {
			if r.Type != resources.TypeMeshTrafficPermission {
				return nil
			}
			return checkPermissionFields(r.Spec.JSON())
		}},
	}
}
