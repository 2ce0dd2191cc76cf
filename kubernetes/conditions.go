package kubernetes

import (
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// conditionInputs holds the inputs of conditions.
type conditionInputs struct {
	// refused is why the object is not in the store as written.
	refused error
	// unjudged is set while nothing is known of the object as it is now.
	unjudged bool
	// stored is the resource in the store; nil if there is none.
	stored *resources.Resource
	// generation is the object's.
	generation int64
	// others are the conditions that the server shows to the object's author.
	others  []resources.Condition
	rollout *tracker.Rollout
	// author reports what the object's author may read. Nil may read everything.
	author *api.Reader
}

// conditions returns the conditions of a resource in a fixed order.
func (n *conditionInputs) conditions() []resources.Condition {
	list := n.known()
	return append(list, n.ready(list)...)
}

// known returns the conditions without those that follow from them.
func (n *conditionInputs) known() []resources.Condition {
	if n.refused != nil || n.unjudged || n.stored == nil || n.stored.Object.Generation != n.generation {
		return n.unaccepted()
	}
	out := []resources.Condition{
		n.of(resources.ConditionAccepted, "Accepted", "it is valid, and stored"),
		n.of(resources.ConditionResolvedRefs, "ResolvedRefs", "every reference resolves, as far as known"),
		programmed(n.rollout, n.author),
	}
	for _, c := range n.others {
		switch c.Type {
		case resources.ConditionAccepted, resources.ConditionResolvedRefs, resources.ConditionReady: // merged
		default:
			out = append(out, c)
		}
	}
	return out
}

// unaccepted returns the conditions of an object that is not in the store as written.
func (n *conditionInputs) unaccepted() []resources.Condition {
	if n.refused == nil { // nothing is known of this generation
		return []resources.Condition{{Type: resources.ConditionAccepted, Status: resources.ConditionUnknown,
			Reason: "Pending", Message: "the server has not processed it yet"}}
	}
	reason, message := "Invalid", explained(n.refused)
	if waits(n.refused) {
		reason = "NotAccepted"
	}
	rest := "no part of it has an effect"
	switch {
	case n.stored == nil:
	case n.stored.Object.Generation == n.generation: // labels belong to no generation
		rest = "its version before the labels changed stays in force"
	default:
		rest = fmt.Sprintf("generation %d of it, the last valid one, stays in force", n.stored.Object.Generation)
	}
	return []resources.Condition{
		{Type: resources.ConditionAccepted, Status: resources.ConditionFalse, Reason: reason, Message: message + "\n" + rest},
		{Type: conditionProgrammed, Status: resources.ConditionFalse, Reason: reason, Message: rest},
	}
}

// waits reports whether the document itself is valid, but the state of the store does not allow it.
func waits(err error) bool {
	fields := api.Explained(err).InvalidParameters
	return len(fields) > 0 && fields[0].Field == "mesh" && strings.HasPrefix(fields[0].Reason, api.UnknownMesh)
}

// explained returns the text of an error for the author of an object: a line for each field.
func explained(err error) string {
	e := api.Explained(err)
	if len(e.InvalidParameters) == 0 {
		return e.Detail
	}
	lines := make([]string, len(e.InvalidParameters))
	for i, p := range e.InvalidParameters {
		lines[i] = p.Field + ": " + p.Reason
	}
	return strings.Join(lines, "\n")
}

// of merges the conditions of a type that the server shows. Without any, it is True.
func (n *conditionInputs) of(name, reason, message string) resources.Condition {
	out := resources.Condition{Type: name, Status: resources.ConditionTrue, Reason: reason, Message: message}
	var texts []string
	for _, c := range n.others {
		if c.Type != name || c.Status == resources.ConditionTrue {
			continue
		}
		out.Status, out.Reason = c.Status, c.Reason
		texts = append(texts, c.Message)
	}
	if len(texts) > 0 {
		out.Message = strings.Join(texts, "\n")
	}
	return out
}
