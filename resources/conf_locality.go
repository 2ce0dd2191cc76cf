package resources

import (
	"encoding/json"
	"slices"
)

// LocalityAwareness sets the zones whose endpoints are preferred.
type LocalityAwareness struct {
	Disabled  *bool      `json:"disabled,omitempty"`
	LocalZone *LocalZone `json:"localZone,omitempty"`
	CrossZone *CrossZone `json:"crossZone,omitempty"`
}

// LocalZone prefers local endpoints with the same values of tags.
type LocalZone struct {
	AffinityTags []AffinityTag `json:"affinityTags,omitempty"`
}

// AffinityTag is a tag, with the weight of endpoints that share it.
type AffinityTag struct {
	Key    string  `json:"key,omitempty"`
	Weight *uint32 `json:"weight,omitempty"`
}

// CrossZone sets which zones follow, and when.
type CrossZone struct {
	Failover          []ZoneFailover     `json:"failover,omitempty"`
	FailoverThreshold *FailoverThreshold `json:"failoverThreshold,omitempty"`
}

// FailoverThreshold is the percentage of healthy endpoints below which other zones get requests too.
type FailoverThreshold struct {
	Percentage json.RawMessage `json:"percentage,omitempty" shape:"intOrString"`
}

// ZoneFailover is the order of zones for callers in some zones.
type ZoneFailover struct {
	From *struct {
		Zones []string `json:"zones,omitempty"`
	} `json:"from,omitempty"`
	To struct {
		Type  string   `json:"type,omitempty"`
		Zones []string `json:"zones,omitempty"`
	} `json:"to,omitempty"`
}

// Types of ZoneFailover.
const (
	// FailoverNone ends the list: no other zone gets requests.
	FailoverNone = "None"
	// FailoverOnly selects the zones that it names, FailoverAnyExcept those that it does not.
	FailoverOnly      = "Only"
	FailoverAnyExcept = "AnyExcept"
	FailoverAny       = "Any"
)

// Limits of affinity tags. Envoy refuses endpoints whose weights exceed 32 bits together.
const (
	MaxAffinityTags   = 8
	MaxAffinityWeight = 500_000_000
)

// Limits of a LocalityAwareness.
const (
	maxFailovers     = 16
	maxFailoverZones = 1000
)

func (v *validation) locality(l *LocalityAwareness, at *fieldPath) {
	if l.LocalZone != nil {
		v.affinityTags(l.LocalZone.AffinityTags, at.field("localZone").field("affinityTags"))
	}
	if c := l.CrossZone; c != nil {
		at := at.field("crossZone")
		v.failovers(c.Failover, at.field("failover"))
		if c.FailoverThreshold != nil {
			at := at.field("failoverThreshold").field("percentage")
			if n, err := ParsePercentage(c.FailoverThreshold.Percentage); err != nil || n == 0 {
				v.fail(at, "want a number above 0, at most 100, or a string that holds one")
			}
		}
	}
}

func (v *validation) affinityTags(tags []AffinityTag, at *fieldPath) {
	if !v.few(len(tags), MaxAffinityTags, at) {
		return
	}
	for i, tag := range tags {
		at := at.item(i)
		switch {
		case tag.Key == "":
			v.fail(at.field("key"), "is required")
		case slices.ContainsFunc(tags[:i], func(other AffinityTag) bool { return other.Key == tag.Key }):
			v.fail(at.field("key"), "stands twice")
		}
		switch {
		case (tag.Weight == nil) != (tags[0].Weight == nil):
			v.fail(at.field("weight"), "give all tags a weight, or none")
		case tag.Weight != nil && (*tag.Weight == 0 || *tag.Weight > MaxAffinityWeight):
			v.fail(at.field("weight"), "want 1 to %d, got %d", MaxAffinityWeight, *tag.Weight)
		}
	}
}

func (v *validation) failovers(rules []ZoneFailover, at *fieldPath) {
	if !v.few(len(rules), maxFailovers, at) {
		return
	}
	for i := range rules {
		r, at := &rules[i], at.item(i)
		if r.From != nil && len(r.From.Zones) == 0 {
			v.fail(at.field("from").field("zones"), "name at least one zone, or leave from out")
		}
		if r.From != nil {
			v.zoneNames(r.From.Zones, at.field("from").field("zones"))
		}
		at = at.field("to")
		v.zoneNames(r.To.Zones, at.field("zones"))
		switch r.To.Type {
		case FailoverNone, FailoverAny:
			if len(r.To.Zones) > 0 {
				v.fail(at.field("zones"), "does not belong to type %s", r.To.Type)
			}
		case FailoverOnly, FailoverAnyExcept:
			if len(r.To.Zones) == 0 {
				v.fail(at.field("zones"), "name at least one zone for type %s", r.To.Type)
			}
		default:
			v.fail(at.field("type"), "want None, Only, Any or AnyExcept, got %q", shorten(r.To.Type))
		}
	}
}

func (v *validation) zoneNames(zones []string, at *fieldPath) {
	if !v.few(len(zones), maxFailoverZones, at) {
		return
	}
	for i, zone := range zones {
		if zone == "" {
			v.fail(at.item(i), "is empty")
		}
	}
}
