package inspect

import (
	"fmt"
	"slices"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// effect is the effect of a policy on the Dataplanes that this server knows.
type effect struct {
	// known means that there are Dataplanes, and that effectOn examined all that the policy may select. selects means
	// that it selects one of them.
	known, selects bool
	// without is why the policy has no effect on one of them; empty if there is no such Dataplane.
	without string
}

// mostLookedAt limits the Dataplanes examined for one write or read of a policy.
const mostLookedAt = 1000

// effectOn examines the Dataplanes of the snapshot that the policy selects. It stops at the first on which the policy
// has an effect, and skips those for which may returns false. It examines at most mostLookedAt of those with the labels
// that the policy requires; if there are more, the effect is unknown.
func (c *Config) effectOn(snap store.Snapshot, p *matching.Policy, may func(*resources.Resource) bool) (e effect) {
	var services []*resources.Resource
	gateways := slices.Collect(snap.List(store.Query{Type: resources.TypeMeshGateway, Mesh: p.Resource.Mesh}))
	looked := 0
	for dataplane := range snap.List(store.Query{Type: resources.TypeDataplane, Mesh: p.Resource.Mesh,
		Labels: p.Target.Labels}) {
		if looked++; looked > mostLookedAt {
			return effect{}
		}
		e.known = true
		if !matching.MaySelect(p, dataplane) || !c.crosses(p.Resource, dataplane.Zone()) {
			continue
		}
		proxy, err := matching.NewProxy(dataplane)
		if err != nil || !matching.Selects(p, proxy.WithGateways(gateways, c.SystemNamespace)) {
			continue
		}
		e.selects = true
		if !resources.RequestsOnly(p.Resource.Type) {
			return e
		}
		if services == nil {
			services = []*resources.Resource{}
			for r := range snap.List(store.Query{Type: resources.TypeMeshService, Mesh: p.Resource.Mesh}) {
				services = append(services, r)
			}
		}
		without := matching.WithoutHTTP(p, proxy.WithServices(services))
		if without == "" {
			return e
		}
		if e.without == "" && (may == nil || may(dataplane)) {
			e.without = without
		}
	}
	e.known = e.known || snap.Count(resources.TypeDataplane, p.Resource.Mesh) > 0
	return e
}

// effectTexts reports that a policy selects nothing, or nothing on which it has an effect.
func (h *handlers) effectTexts(snap store.Snapshot, p *matching.Policy, may func(*resources.Resource) bool) []string {
	if p.Resource.Descriptor().Policy == nil || !p.Enforced() {
		return nil
	}
	if !resources.RequestsOnly(p.Resource.Type) && len(p.Target.Labels) == 0 &&
		snap.Count(resources.TypeDataplane, p.Resource.Mesh) > mostLookedAt {
		return nil // not all would be looked at, or one that it selects is among them
	}
	e, zone := h.views.config.effectOn(snap, p, may), h.views.config.Zone
	switch {
	case e.without != "":
		return []string{"has no effect on the proxies that it selects: " + e.without}
	case !e.known || e.selects || zone != "" && p.Role == resources.RoleProducer:
		return nil
	case zone == "":
		return []string{"selects no Dataplane: compare targetRef with the labels and names of Dataplanes"}
	}
	return []string{fmt.Sprintf("selects no Dataplane in %s: compare targetRef with the labels and names of Dataplanes",
		zone)}
}

// policyWarnings returns the warnings for a write about parts of a policy without effect. It reads the policy once.
func (h *handlers) policyWarnings(after store.Snapshot, r *resources.Resource, reader *api.Reader) []string {
	if r.Type == resources.TypeMeshGateway {
		return h.gatewayTexts(after, r)
	}
	if r.Type == resources.TypeTrafficTarget {
		return h.trafficWarnings(after, r, reader)
	}
	if r.Descriptor().Policy == nil {
		return nil
	}
	p := h.views.config.LastRead.Policy(r, h.views.config.SystemNamespace)
	return slices.Concat(h.tcpWarnings(after, p, reader), h.effectWarnings(after, p, reader),
		h.problemWarnings(after, p, reader))
}

// effectWarnings returns warnings about a policy that selects nothing, or nothing on which it has an effect.
func (h *handlers) effectWarnings(after store.Snapshot, p *matching.Policy, reader *api.Reader) []string {
	var out []string
	for _, w := range p.ByTags() {
		out = append(out, "spec."+w.Field+": "+w.Text)
	}
	return append(out, h.effectTexts(after, p, reader.May)...)
}

// effectConditions reports the same in a policy's conditions, and the parts that no proxy enforces.
func (h *handlers) effectConditions(v *view, p *matching.Policy) []resources.Condition {
	parts, _ := resources.Unenforced(p.Resource)
	out := make([]resources.Condition, 0, len(parts))
	for _, part := range parts {
		out = append(out, resources.Condition{Type: resources.ConditionAccepted, Status: resources.ConditionFalse,
			Reason: reasonNotEnforced, Message: part})
	}
	for _, one := range h.views.config.Shortfalls.Of(p.Resource.Mesh)[p.KRI.String()] {
		out = append(out, resources.Condition{Type: resources.ConditionAccepted, Status: resources.ConditionFalse,
			Reason: reasonNotEnforced, Message: one.String()})
	}
	for _, text := range h.effectTexts(v.snap, p, nil) {
		out = append(out, resources.Condition{Type: resources.ConditionAccepted, Status: resources.ConditionFalse,
			Reason: reasonSelectsNothing, Message: text})
	}
	return out
}
