package inspect

import (
	"fmt"
	"sync"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// selected remembers a Dataplane that served each MeshGateway at its last write, which probably still does: no other
// need be looked at then. The zero value remembers nothing.
type selected struct {
	mu  sync.Mutex
	all map[resources.Key]resources.Key // guarded by mu
}

// mostSelected limits the MeshGateways that selected remembers.
const mostSelected = 4096

func (s *selected) get(gateway resources.Key) resources.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[gateway]
}

func (s *selected) set(gateway, dataplane resources.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil || len(s.all) >= mostSelected {
		s.all = map[resources.Key]resources.Key{}
	}
	s.all[gateway] = dataplane
}

// gatewayTexts reports that no Dataplane that this server knows serves a MeshGateway.
func (h *handlers) gatewayTexts(snap store.Snapshot, r *resources.Resource) []string {
	c := h.views.config
	if c.Zone != "" && r.Zone() != "" && r.Zone() != c.Zone {
		return nil
	}
	selection := matching.NewSelection(r, c.SystemNamespace, snap.List(store.Query{Type: resources.TypeMeshGateway,
		Mesh: r.Mesh}))
	if last := snap.Get(h.views.selected.get(r.Key)); last != nil && selection.Has(last) {
		return nil
	}
	if snap.Count(resources.TypeDataplane, r.Mesh) > mostLookedAt {
		return nil // not all would be looked at
	}
	for dataplane := range snap.List(store.Query{Type: resources.TypeDataplane, Mesh: r.Mesh}) {
		if selection.Has(dataplane) {
			h.views.selected.set(r.Key, dataplane.Key)
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
