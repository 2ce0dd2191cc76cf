package kds

import (
	"iter"
	"maps"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// view is an audience at two moments: which zones took part at the start of a change, and at its end. It serves one
// message and is not shared.
type view struct {
	then, now exchange.Audience

	snapshot store.Snapshot
	known    map[string]bool // zones that were looked up in snapshot
	before   map[string]bool // zones that changed, as they were

	// particular is set if the content depends on the zone, so that the message is for this zone alone. alone is called
	// as soon as it is.
	particular bool
	alone      func()
}

// isParticular records that the content depends on the zone.
func (v *view) isParticular() {
	if v.particular {
		return
	}
	v.particular = true
	if v.alone != nil {
		v.alone()
	}
}

func newView(a exchange.Audience, snapshot store.Snapshot) *view {
	v := &view{then: a, now: a, snapshot: snapshot}
	v.now.Enabled = v.enabledNow
	v.then.Enabled = func(zone string) bool {
		if was, changed := v.before[zone]; changed {
			return was
		}
		return v.enabledNow(zone)
	}
	return v
}

func (v *view) enabledNow(zone string) bool {
	if enabled, ok := v.known[zone]; ok {
		return enabled
	}
	enabled := ZoneEnabled(v.snapshot, zone)
	if v.known == nil {
		v.known = map[string]bool{}
	}
	v.known[zone] = enabled
	return enabled
}

// was records how a zone was before the first of its changes.
func (v *view) was(zone string, old *resources.Resource) {
	if _, noted := v.before[zone]; noted {
		return
	}
	if v.before == nil {
		v.before = map[string]bool{}
	}
	v.before[zone] = takesPart(old)
}

// flipped yields the zones that began or ceased to take part.
func (v *view) flipped() iter.Seq[string] {
	return func(yield func(string) bool) {
		for zone, was := range v.before {
			if was != v.enabledNow(zone) && !yield(zone) {
				return
			}
		}
	}
}

// ZoneKey is the key of a zone's resource.
func ZoneKey(zone string) resources.Key {
	return resources.Key{Type: resources.TypeZone, Name: zone}
}

// ZoneEnabled reports whether a zone takes part. One that is not registered, or cannot be read, does: in doubt, what it
// wrote is not withdrawn.
func ZoneEnabled(snapshot store.Snapshot, zone string) bool {
	return takesPart(snapshot.Get(ZoneKey(zone)))
}

func takesPart(zone *resources.Resource) bool {
	if zone == nil {
		return true
	}
	spec, err := resources.SpecAs[systempb.Zone](zone)
	return err != nil || spec.GetEnabled() == nil || spec.GetEnabled().GetValue()
}

func equalLabels(a, b *resources.Resource) bool { return maps.Equal(a.Labels, b.Labels) }
