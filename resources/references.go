package resources

import (
	"encoding/json"
	"fmt"
)

// LabelReferences keeps the references of a policy as its writer wrote them: a JSON object from the reference's place
// (`to[0].targetRef`) to a WrittenReference. The global computes it when it gives references the names that copies have; no
// peer's word is taken for it on the way up. Source: seed 004, "Cross-resource references".
const LabelReferences = "causeway.io/original-references"

// WrittenReference is the name of a reference as it was written.
type WrittenReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// WrittenReferences reads LabelReferences; nil where r does not have it. It fails when the label is not what it should be.
func WrittenReferences(r *Resource) (map[string]WrittenReference, error) {
	label, ok := r.Labels[LabelReferences]
	if !ok {
		return nil, nil
	}
	written := map[string]WrittenReference{}
	if err := json.Unmarshal([]byte(label), &written); err != nil {
		return nil, fmt.Errorf("label %s: %w", LabelReferences, err)
	}
	return written, nil
}
