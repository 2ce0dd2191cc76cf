package kubernetes

import (
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// TestReadySaysWhetherToWait checks what programs wait for: Ready is True only of what all have, and what only a change can
// help is Stalled.
func TestReadySaysWhetherToWait(t *testing.T) {
	stored := &resources.Resource{Object: resources.Object{UID: "u", Generation: 2}}
	stored.Type = resources.TypeMeshTimeout
	rollout := func(change func(*tracker.Rollout)) *tracker.Rollout {
		r := &tracker.Rollout{Type: resources.TypeMeshTimeout, Zones: tracker.RolloutZones{Acknowledged: 1, Total: 1},
			Proxies: tracker.RolloutProxies{Enforced: 1, Total: 1}}
		change(r)
		return r
	}
	own := func(status, reason string) []resources.Condition {
		return []resources.Condition{{Type: resources.ConditionReady, Status: status, Reason: reason, Message: "what the server itself says"}}
	}
	for name, tt := range map[string]struct {
		inputs                 conditionInputs
		ready, reason, stalled string
	}{
		"enforced": {conditionInputs{rollout: rollout(func(*tracker.Rollout) {})}, "True", "Ready", ""},
		"a proxy lacks it": {conditionInputs{rollout: rollout(func(r *tracker.Rollout) { r.Proxies.Enforced = 0 })},
			"False", "Pending", ""},
		"a zone is away": {conditionInputs{rollout: rollout(func(r *tracker.Rollout) {
			r.Zones.Offline = []tracker.RolloutOffline{{Zone: "zone-2"}}
		})}, "Unknown", "Offline", ""},
		"a zone refuses it": {conditionInputs{rollout: rollout(func(r *tracker.Rollout) {
			r.Zones.Refused = []tracker.RolloutRefused{{Zone: "zone-2", Reason: "too old"}}
		})}, "False", "Refused", "Refused"},
		"a field is not enforced": {conditionInputs{rollout: rollout(func(r *tracker.Rollout) { r.NotEnforced = []string{"to"} })},
			"False", "NotEnforced", "NotEnforced"},
		"not valid": {conditionInputs{refused: api.BadField("spec.to", "unknown field"), generation: 3}, "False", "Invalid", "Invalid"},
		"its mesh is not there": {conditionInputs{refused: api.BadField("mesh", "%s", api.UnknownMesh+`"later"`), generation: 3},
			"False", "NotAccepted", ""},
		"it gives no identity yet": {conditionInputs{rollout: rollout(func(*tracker.Rollout) {}), others: own(resources.ConditionFalse, "NotSigning")},
			"False", "NotSigning", ""},
		"it gives identities, and a proxy lacks it": {conditionInputs{others: own(resources.ConditionTrue, "Ready"),
			rollout: rollout(func(r *tracker.Rollout) { r.Proxies.Enforced = 0 })}, "False", "Pending", ""},
		"it gives identities, and a zone refuses it": {conditionInputs{others: own(resources.ConditionTrue, "Ready"), rollout: rollout(func(r *tracker.Rollout) {
			r.Zones.Refused = []tracker.RolloutRefused{{Zone: "zone-2", Reason: "too old"}}
		})}, "False", "Refused", "Refused"},
		"it gives no identity, and a zone is away": {conditionInputs{others: own(resources.ConditionFalse, "NotSigning"), rollout: rollout(func(r *tracker.Rollout) {
			r.Zones.Offline = []tracker.RolloutOffline{{Zone: "zone-2"}}
		})}, "False", "NotSigning", ""},
		"it gave identities, and is judged anew": {conditionInputs{unjudged: true, others: own(resources.ConditionFalse, "NotSigning"),
			rollout: rollout(func(*tracker.Rollout) {})}, "Unknown", "Pending", ""},
		"not processed": {conditionInputs{generation: 3}, "Unknown", "Pending", ""},
	} {
		tt.inputs.stored = stored
		if tt.inputs.generation == 0 {
			tt.inputs.generation = stored.Object.Generation
		}
		var is, stalled resources.Condition
		seen := map[string]bool{}
		for _, c := range tt.inputs.conditions() {
			if seen[c.Type] {
				t.Errorf("%s: there are two conditions %s", name, c.Type)
			}
			seen[c.Type] = true
			switch c.Type {
			case resources.ConditionReady:
				is = c
			case conditionStalled:
				stalled = c
			}
		}
		if is.Status != tt.ready || is.Reason != tt.reason || is.Message == "" {
			t.Errorf("%s: Ready is %+v, want %s, %s", name, is, tt.ready, tt.reason)
		}
		if stalled.Reason != tt.stalled || (stalled.Status == resources.ConditionTrue) != (tt.stalled != "") {
			t.Errorf("%s: Stalled is %+v, want %q", name, stalled, tt.stalled)
		}
	}
}
