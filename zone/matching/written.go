package matching

import (
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// written are the references of a policy whose names were rewritten on the way here, as the policy's writer knows them.
type written map[string]resources.WrittenReference

func writtenBy(p *Policy) written {
	refs, _ := resources.WrittenReferences(p.Resource) // a label that does not decode says nothing: the names stay as they are
	return refs
}

// text is what resolving the reference in a field came to, with the reference named as it was written.
func (w written) text(field string, ref *resources.TargetRef, text string) string {
	as, ok := w[field]
	if !ok {
		return text
	}
	before := *ref
	before.Name, before.Namespace = as.Name, as.Namespace
	return strings.Replace(text, describe(ref), describe(&before), 1)
}
