package kubernetes

import (
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// The conditions by which programs wait for objects of any kind: Flux, and others that use kstatus, and Argo CD by a script.
// Ready is True once nothing is left to do. Stalled is there, and True, while nothing will change unless somebody changes
// the object or what refuses it. Source: kstatus.
const conditionStalled = "Stalled"

// ready returns the conditions that follow from the others, which are in list, and from what the server says of an object
// that does something itself, as a MeshIdentity that signs: Ready, and Stalled where it is.
func (n *conditionInputs) ready(list []resources.Condition) []resources.Condition {
	find := func(name string) *resources.Condition {
		if i := slices.IndexFunc(list, func(c resources.Condition) bool { return c.Type == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	is := *find(resources.ConditionAccepted)
	if p := find(conditionProgrammed); p != nil && is.Status == resources.ConditionTrue {
		is = n.withOwn(*p)
	}
	is.Type = resources.ConditionReady
	if is.Status == resources.ConditionTrue {
		is.Reason = resources.ConditionReady
	}
	if is.Status != resources.ConditionFalse || !slices.Contains(final(), is.Reason) {
		return []resources.Condition{is}
	}
	stalled := resources.Condition{Type: conditionStalled, Status: resources.ConditionTrue, Reason: is.Reason, Message: is.Message}
	return []resources.Condition{is, stalled}
}

// withOwn adds to how far an object has come whether it does what it is for, as far as the server says it.
func (n *conditionInputs) withOwn(is resources.Condition) resources.Condition {
	texts := []string{is.Message}
	for _, c := range n.others {
		if c.Type != resources.ConditionReady {
			continue
		}
		if c.Status != resources.ConditionTrue && is.Status != resources.ConditionFalse {
			is.Status, is.Reason = c.Status, c.Reason
		}
		if c.Message != "" {
			texts = append(texts, c.Message)
		}
	}
	is.Message = strings.Join(texts, "; ")
	return is
}

// final lists the reasons for which an object stays as it is. One whose mesh is not there yet only waits for it.
func final() []string { return []string{"Invalid", "Refused", "NotEnforced"} }
