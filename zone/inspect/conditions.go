package inspect

import (
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Reasons of the conditions of policies.
const (
	reasonNotResolved = "NotResolved"
	reasonIneffective = "PartlyIneffective"
	reasonNotBelieved = "NotBelieved"
	// reasonNotEnforced reports parts that this version's proxies do not enforce. reasonSelectsNothing reports a policy
	// that affects no Dataplane known to this server.
	reasonNotEnforced    = "NotEnforced"
	reasonSelectsNothing = "SelectsNothing"
)

// conditions reports that no proxy trusts a MeshTrust, and which parts of a policy have no effect on any proxy:
// references that do not resolve, confs that do not decode, clients that cannot be distinguished. Source: seed 004,
// "Cross-resource references".
func (h *handlers) conditions(r *resources.Resource) []resources.Condition {
	if r.Type == resources.TypeMeshTrust {
		return trustConditions(h.views.config.Store.Snapshot(), r,
			resources.Home{Zone: h.views.config.Zone, SystemNamespace: h.views.config.SystemNamespace})
	}
	if r.Type == resources.TypeMeshGateway {
		return h.gatewayConditions(r)
	}
	if r.Descriptor().Policy == nil && !isPermission(r.Type) {
		return nil
	}
	v := h.views.of(r.Mesh)
	if v == nil {
		return nil
	}
	p := v.policies[r.Key]
	if p == nil && r.Descriptor().Policy == nil {
		return nil // written since: the next call reports its problems
	}
	if p == nil || p.Resource != r && r.Descriptor().Policy != nil {
		p = matching.NewPolicy(r, v.config.SystemNamespace)
	}
	var out []resources.Condition
	x := v.destinations(v.home())
	for _, w := range v.config.allProblems(v.snap, x, p) {
		c := resources.Condition{Type: resources.ConditionAccepted, Status: resources.ConditionFalse,
			Reason: reasonIneffective, Message: w.Text}
		if isPermission(r.Type) && r.Descriptor().Policy == nil && w.Field != "" || isReference(w.Field) {
			c.Type, c.Reason = resources.ConditionResolvedRefs, reasonNotResolved
		}
		if w.Field != "" {
			c.Message = w.Field + ": " + w.Text
		}
		out = append(out, c)
	}
	return append(out, h.effectConditions(v, p)...)
}

// trustConditions reports a MeshTrust that no proxy trusts.
func trustConditions(snap store.Snapshot, r *resources.Resource, home resources.Home) []resources.Condition {
	err := identity.CheckTrust(snap, r, home)
	if err == nil {
		return nil
	}
	return []resources.Condition{{Type: resources.ConditionAccepted, Status: resources.ConditionFalse,
		Reason: reasonNotBelieved, Message: "no proxy trusts it: " + err.Error()}}
}

// isReference reports whether a field of a policy names a service, a route or a gateway: the `targetRef`, one of `to`,
// or a route's `backendRefs[i]` or `backendRef`.
func isReference(field string) bool {
	if field == "targetRef" {
		return true
	}
	last := field[strings.LastIndexByte(field, '.')+1:]
	return strings.HasPrefix(field, "to[") &&
		(last == "targetRef" || last == "backendRef" || strings.HasPrefix(last, "backendRefs["))
}

// home returns the zone in which policies' references are resolved: this server's own. On the global, the references of
// a zone's policies start in that zone anyway.
func (v *view) home() string { return v.config.Zone }
