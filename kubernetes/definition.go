package kubernetes

import (
	"context"
	"encoding/json"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
)

// AnnotationAcceptDeletions on a CustomResourceDefinition accepts the held deletions of its kind. The server removes it
// after it has carried them out.
const AnnotationAcceptDeletions = "causeway.io/accept-deletions"

// definition is the state of a kind at the API server.
type definition struct {
	created time.Time
	gone    string // why its objects are gone together with it; empty if they are not
	// said means that an operator's acceptance is present; accepted, that it is not used up.
	said, accepted bool
}

func (b *Bridge) definition(ctx context.Context, k Kind) (*definition, error) {
	o, err := b.Client.Get(ctx, definitions, apiserver.Name{Name: k.Plural + "." + k.Group})
	switch {
	case apiserver.IsNotFound(err):
		return &definition{gone: "its CustomResourceDefinition is gone"}, nil
	case err != nil:
		return nil, err
	case o.Meta.DeletionTimestamp != nil:
		return &definition{gone: "its CustomResourceDefinition is being deleted"}, nil
	}
	_, said := o.Meta.Annotations[AnnotationAcceptDeletions]
	return &definition{created: o.Meta.CreationTimestamp, said: said, accepted: said && !b.isSpent(k.Type)}, nil
}

// isSpent reports whether the operator's acceptance for a kind was carried out and only waits to be removed.
func (b *Bridge) isSpent(t resources.Type) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kinds[t].spent
}

func (b *Bridge) setSpent(k *kindState, spent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k.spent = spent
}

// clearAcceptance removes the operator's acceptance once it is carried out, so that it does not apply to later
// deletions, and reports whether it is gone.
func (b *Bridge) clearAcceptance(ctx context.Context, k *kindState) bool {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{AnnotationAcceptDeletions: nil}}})
	if err == nil {
		_, err = b.Client.Patch(ctx, definitions, apiserver.Name{Name: k.Plural + "." + k.Group}, "", patch)
	}
	if err != nil {
		b.Log.Warn("cannot remove the annotation that accepts deletions; it no longer applies; trying again", "type", k.Type,
			"error", err)
	}
	return err == nil
}
