package resources

import (
	"encoding/json"
	"fmt"
)

// Condition is a statement about a resource for its author. Servers show conditions in `status.conditions`. They
// compute conditions when a resource is read and never store them.
type Condition struct {
	// Type names the subject of the condition in one word: one of the constants below.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status string `json:"status"`
	// Reason is one word for programs. Message is a text for people.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Types of conditions.
const (
	// ConditionAccepted is False if a part of the resource has no effect as written.
	ConditionAccepted = "Accepted"
	// ConditionResolvedRefs is False if a reference matches nothing, or is ambiguous.
	ConditionResolvedRefs = "ResolvedRefs"
	// ConditionSynced is False if a peer refused the resource.
	ConditionSynced = "Synced"
	// ConditionDeletionsHeld is True for a Zone that holds deletions from the global's list.
	ConditionDeletionsHeld = "DeletionsHeld"
	// ConditionReady is True for a MeshIdentity that issues identities in this zone. ConditionMeshTrustCreated is True
	// if the zone publishes the authorities that sign them.
	ConditionReady            = "Ready"
	ConditionMeshTrustCreated = "MeshTrustCreated"
	// ConditionConnected is True for a ZoneIngress whose proxy is connected to this zone, the ingress's own.
	ConditionConnected = "Connected"
	// ConditionEgress is True for a MeshExternalService that is reached through an egress, as its mesh requires.
	ConditionEgress = "Egress"
	// ConditionCloned is True for a Zone whose identity two servers use alternately.
	ConditionCloned = "Cloned"
)

// Values of Condition.Status.
const (
	ConditionTrue    = "True"
	ConditionFalse   = "False"
	ConditionUnknown = "Unknown"
)

// WithStatus returns r with fields in its status, which replace existing ones, and with conditions appended. It returns
// r itself if there is nothing to add. It fails if the status of r is not an object with a list of conditions.
func WithStatus(r *Resource, fields map[string]any, conditions []Condition) (*Resource, error) {
	if len(fields)+len(conditions) == 0 {
		return r, nil
	}
	status := map[string]json.RawMessage{}
	if len(r.Status) > 0 {
		if err := json.Unmarshal(r.Status, &status); err != nil {
			return nil, fmt.Errorf("%s: status: %w", r.Key, err)
		}
	}
	var err error
	for name, value := range fields {
		if status[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	if len(conditions) > 0 {
		if status["conditions"], err = appendConditions(r, status["conditions"], conditions); err != nil {
			return nil, err
		}
	}
	c := r.Clone()
	c.Status, err = json.Marshal(status)
	return c, err
}

func appendConditions(r *Resource, have json.RawMessage, conditions []Condition) (json.RawMessage, error) {
	var list []json.RawMessage
	if len(have) > 0 {
		if err := json.Unmarshal(have, &list); err != nil {
			return nil, fmt.Errorf("%s: status.conditions: %w", r.Key, err)
		}
	}
	for i := range conditions {
		one, err := json.Marshal(&conditions[i])
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return json.Marshal(list)
}
