package inspect

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// groupedQuery makes `_rules` group the destinations of a proxy. A policy for all of a mesh of thousands of services is
// otherwise thousands of entries.
const groupedQuery = "grouped"

// maxAlso bounds the destinations that a group names besides its first.
const maxAlso = 100

func wantsGroups(r *http.Request) (bool, error) {
	switch text := r.URL.Query().Get(groupedQuery); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, api.BadField(groupedQuery, "want true or false, got %q", text)
	}
}

// groupOf returns a text that is the same for rules with the same conf from the same items. Without groups it is empty.
// A rule for all other destinations is in no group with those of some.
func (a *asked) groupOf(rule *matching.ResourceRule) string {
	if !a.grouped {
		return ""
	}
	var key strings.Builder
	if rule.Destination == nil {
		key.WriteString("others ")
	}
	for _, o := range rule.Origins {
		key.WriteString(o.KRI().String() + " " + strconv.Itoa(o.RuleIndex) + " ")
	}
	key.Write(rule.Conf)
	return key.String()
}

// add adds the destination of another rule of the group.
func (r *ResourceRule) add(rule *matching.ResourceRule) {
	r.AlsoTotal++
	if len(r.Also) < maxAlso {
		r.Also = append(r.Also, rule.Destination.KRI.WithSection(rule.Key.Section).String())
	}
}
