package tracker

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// RefusedBy is a server that refuses a resource.
type RefusedBy struct {
	// Zone is empty for the global.
	Zone   string
	Reason string
	Since  time.Time
}

// Conditions returns a `status.conditions` entry that lists who refuses a resource; nil if no one does.
func Conditions(refused []RefusedBy) []resources.Condition {
	if len(refused) == 0 {
		return nil
	}
	lines := make([]string, 0, len(refused))
	for i, by := range refused {
		if i == maxConditionLines {
			lines = append(lines, fmt.Sprintf("and %d more", len(refused)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s, since %s: %s", cmp.Or(by.Zone, "the global"),
			by.Since.UTC().Format(time.RFC3339), by.Reason))
	}
	return []resources.Condition{{Type: resources.ConditionSynced, Status: resources.ConditionFalse, Reason: "Refused",
		Message: strings.Join(lines, "\n")}}
}

// maxConditionLines bounds the zones that a condition names.
const maxConditionLines = 20
