package resources

import (
	"encoding/json"
	"fmt"
)

// LabelReferences preserves the references of a policy as its author wrote them: a JSON object from the reference's
// place (`to[0].targetRef`) to a WrittenReference. The global computes it when it replaces references by the names that
// copies have. It ignores a value that a peer sends up. Source: seed 004, "Cross-resource references".
const LabelReferences = "causeway.io/original-references"

// WrittenReference is the name of a reference as its author wrote it.
type WrittenReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// WrittenReferences decodes LabelReferences. It returns nil if r does not have the label, and an error if the label is
// malformed.
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
