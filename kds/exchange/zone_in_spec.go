package exchange

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// pinDataplaneTags sets the tag kuma.io/zone of a proxy's inbounds and gateway to the zone, if the tag is present.
func pinDataplaneTags(r *resources.Resource, here *Arrival) error {
	if r.Type != resources.TypeDataplane {
		return nil
	}
	var spec map[string]any
	if err := json.Unmarshal(r.Spec.JSON(), &spec); err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	networking, _ := spec["networking"].(map[string]any)
	changed := false
	pin := func(_ string, holder map[string]any) {
		tags, _ := holder["tags"].(map[string]any)
		if zone, ok := tags[resources.LabelZone]; ok && zone != here.Zone {
			tags[resources.LabelZone] = here.Zone
			changed = true
		}
	}
	resources.EachObject(networking["inbound"], "inbound", pin)
	if gateway, ok := networking["gateway"].(map[string]any); ok {
		pin("gateway", gateway)
	}
	if !changed {
		return nil
	}
	raw, err := marshal(spec)
	if err != nil {
		return err
	}
	r.Spec, err = resources.NewSpec(r.Type, raw)
	return err
}

// sayZone sets the zone of a ZoneIngress, without which zones of Kuma take it for their own and do not use it. Source:
// Kuma's wire format, "Seen with a real peer".
func sayZone(r *resources.Resource, zone string) error {
	if r.Type != resources.TypeZoneIngress || zone == "" {
		return nil
	}
	spec, err := resources.SpecAs[meshpb.ZoneIngress](r)
	if err != nil || spec.GetZone() == zone {
		return err
	}
	said, ok := proto.Clone(spec).(*meshpb.ZoneIngress)
	if !ok {
		return fmt.Errorf("spec: not a ZoneIngress: %T", spec)
	}
	said.Zone = zone
	r.Spec, err = resources.NewSpecOf(r.Type, said)
	return err
}
