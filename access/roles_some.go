package access

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// MayWriteSome reports whether the subject may create or update anything. If not, the server need not read the body.
func (g *Guard) MayWriteSome(s Subject) bool {
	if s.Only != nil {
		return false
	}
	return g.Roles().some(s, func(rule *resources.AccessRule) bool {
		return len(rule.Types) > 0 && slices.ContainsFunc(rule.Verbs, func(verb string) bool {
			return verb == resources.VerbCreate || verb == resources.VerbUpdate || verb == resources.AccessAny
		})
	})
}
