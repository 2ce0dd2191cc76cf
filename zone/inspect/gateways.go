package inspect

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// gatewayTexts reports that no Dataplane that this server knows serves a MeshGateway.
func (h *handlers) gatewayTexts(snap store.Snapshot, r *resources.Resource) []string {
	c := h.views.config
	if c.Zone != "" && r.Zone() != "" && r.Zone() != c.Zone {
		return nil
	}
	selection := matching.NewSelection(r, c.SystemNamespace, snap.List(store.Query{Type: resources.TypeMeshGateway,
		Mesh: r.Mesh}))
	known := 0
	for dataplane := range snap.List(store.Query{Type: resources.TypeDataplane, Mesh: r.Mesh}) {
		if known++; known > mostLookedAt || selection.Has(dataplane) {
			return nil
		}
	}
	where := ""
	if c.Zone != "" {
		where = " in " + c.Zone
	}
	return []string{fmt.Sprintf("selects no Dataplane%s: compare selectors with networking.gateway.tags of Dataplanes of the type BUILTIN, and name the tag %s for one in a namespace",
		where, resources.LabelNamespace)}
}

// gatewayConditions reports the parts of a MeshGateway that no proxy serves, or that no proxy serves it at all.
func (h *handlers) gatewayConditions(r *resources.Resource) (out []resources.Condition) {
	add := func(reason string, texts []string) {
		for _, text := range texts {
			out = append(out, resources.Condition{Type: resources.ConditionAccepted, Status: resources.ConditionFalse,
				Reason: reason, Message: text})
		}
	}
	add(reasonNotEnforced, resources.UnservedParts(r))
	add(reasonSelectsNothing, h.gatewayTexts(h.views.config.Store.Snapshot(), r))
	return out
}
