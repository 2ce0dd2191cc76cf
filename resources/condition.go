package resources

import (
	"encoding/json"
	"fmt"
)

// Condition is one thing that holds for a resource and that its writer should know, as servers show it in
// `status.conditions`. Conditions are computed when a resource is read; nothing of them is stored.
type Condition struct {
	// Type names what the condition is about, in one word: a value of the constants below.
	Type string `json:"type"`
	// Status is one of True, False and Unknown.
	Status string `json:"status"`
	// Reason is one word for programs, Message a text for people.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Types of conditions.
const (
	// ConditionAccepted is False where a part of a resource takes no effect, as it is written.
	ConditionAccepted = "Accepted"
	// ConditionResolvedRefs is False where a reference means nothing, or more than one thing.
	ConditionResolvedRefs = "ResolvedRefs"
	// ConditionSynced is False where a peer refused the resource.
	ConditionSynced = "Synced"
	// ConditionDeletionsHeld is True for a Zone that holds removals which the global's list would bring about.
	ConditionDeletionsHeld = "DeletionsHeld"
	// ConditionReady is True for a MeshIdentity that gives identities in this zone, ConditionMeshTrustCreated where the zone
	// publishes who signs them.
	ConditionReady            = "Ready"
	ConditionMeshTrustCreated = "MeshTrustCreated"
	// ConditionCloned is True for a Zone as which two servers take turns.
	ConditionCloned = "Cloned"
)

// Values of Condition.Status.
const (
	ConditionTrue    = "True"
	ConditionFalse   = "False"
	ConditionUnknown = "Unknown"
)

// WithConditions returns r with conditions added to those of its status; r itself when there are none. It fails when the
// status that r has is not an object with a list of conditions.
func WithConditions(r *Resource, conditions []Condition) (*Resource, error) {
	if len(conditions) == 0 {
		return r, nil
	}
	status := map[string]json.RawMessage{}
	var list []json.RawMessage
	if len(r.Status) > 0 {
		if err := json.Unmarshal(r.Status, &status); err != nil {
			return nil, fmt.Errorf("%s: status: %w", r.Key, err)
		}
		if have := status["conditions"]; len(have) > 0 {
			if err := json.Unmarshal(have, &list); err != nil {
				return nil, fmt.Errorf("%s: status.conditions: %w", r.Key, err)
			}
		}
	}
	for i := range conditions {
		one, err := json.Marshal(&conditions[i])
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	all, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	status["conditions"] = all
	c := r.Clone()
	c.Status, err = json.Marshal(status)
	return c, err
}
