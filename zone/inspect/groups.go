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

// groups are the groups of rules so far, by their places in the answer.
type groups struct {
	byText map[string]int
	// byParts finds the group of a rule that shares its conf and origins with another, as nearly all of them do.
	byParts map[parts]int
}

// parts identify what rules share.
type parts struct {
	conf    *byte
	origins *matching.Origin
	others  bool
}

func newGroups() *groups { return &groups{byText: map[string]int{}, byParts: map[parts]int{}} }

// of returns the place of a rule's group. If it has none, it gets next, and found is false.
func (g *groups) of(rule *matching.ResourceRule, next int) (at int, found bool) {
	key := parts{first(rule.Conf), first(rule.Origins), rule.Destination == nil}
	if at, found = g.byParts[key]; found {
		return at, true
	}
	text := groupText(rule)
	if at, found = g.byText[text]; !found {
		at = next
		g.byText[text] = at
	}
	g.byParts[key] = at
	return at, found
}

// first returns a pointer to the first element, which identifies a list that several share; nil if there is none.
func first[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// groupText returns a text that is the same for rules with the same conf from the same items. A rule for all other
// destinations is in no group with those of some.
func groupText(rule *matching.ResourceRule) string {
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
