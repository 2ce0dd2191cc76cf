package matching

import (
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// written holds the references of a policy that were rewritten on the way here, as the policy's author wrote them.
type written map[string]resources.WrittenReference

func writtenBy(p *Policy) written {
	refs, _ := resources.WrittenReferences(p.Resource) // if a label does not decode, the names stay unchanged
	return refs
}

// text returns the result of resolving the reference in a field, with the reference named as its author wrote it.
func (w written) text(field string, ref *resources.TargetRef, text string) string {
	as, ok := w[field]
	if !ok {
		return text
	}
	before := *ref
	before.Name, before.Namespace = as.Name, as.Namespace
	return strings.Replace(text, describe(ref), describe(&before), 1)
}
