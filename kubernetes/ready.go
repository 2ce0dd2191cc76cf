package kubernetes

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// The conditions by which programs wait for objects of any kind: Flux, and others that use kstatus, and Argo CD by a script.
// Ready is True once nothing is left to do. Stalled is there, and True, while nothing will change unless somebody changes
// the object or what refuses it. Source: kstatus.
const (
	conditionReady   = "Ready"
	conditionStalled = "Stalled"
)

// ready returns the conditions that follow from the others: Ready, and Stalled where it is.
func ready(list []resources.Condition) []resources.Condition {
	find := func(name string) *resources.Condition {
		if i := slices.IndexFunc(list, func(c resources.Condition) bool { return c.Type == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	decides := find(resources.ConditionAccepted)
	if p := find(conditionProgrammed); p != nil && decides.Status == resources.ConditionTrue {
		decides = p
	}
	is := *decides
	is.Type = conditionReady
	if is.Status == resources.ConditionTrue {
		is.Reason = conditionReady
	}
	if is.Status != resources.ConditionFalse || !slices.Contains(final(), is.Reason) {
		return []resources.Condition{is}
	}
	stalled := resources.Condition{Type: conditionStalled, Status: resources.ConditionTrue, Reason: is.Reason, Message: is.Message}
	return []resources.Condition{is, stalled}
}

// final lists the reasons for which an object stays as it is. One whose mesh is not there yet only waits for it.
func final() []string { return []string{"Invalid", "Refused", "NotEnforced"} }
