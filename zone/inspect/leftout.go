package inspect

import (
	"slices"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// leftOut filters out what the caller may not read, and counts each such resource once. The caller sees a merge of
// several policies only if it may read them all.
type leftOut struct {
	reader *api.Reader
	keys   map[resources.Key]bool
}

func newLeftOut(reader *api.Reader) *leftOut {
	return &leftOut{reader: reader, keys: map[resources.Key]bool{}}
}

// count returns the number of resources that were left out.
func (l *leftOut) count() int { return len(l.keys) }

// out reports whether a resource is left out.
func (l *leftOut) out(r *resources.Resource) bool {
	if l.reader.May(r) {
		return false
	}
	l.keys[r.Key] = true
	return true
}

// anyOut reports whether one of the merged items belongs to a policy that is left out.
func (l *leftOut) anyOut(origins []matching.Origin) bool {
	found := false
	for _, o := range origins {
		found = l.out(o.Policy.Resource) || found
	}
	return found
}

// warnings returns the warnings about policies that the caller may read. policies are all that they may belong to.
func (l *leftOut) warnings(all []matching.Warning, policies []*matching.Policy) []matching.Warning {
	if l.reader == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(w matching.Warning) bool {
		i := slices.IndexFunc(policies, func(p *matching.Policy) bool { return p.KRI == w.Policy })
		return i < 0 || l.out(policies[i].Resource)
	})
}

// appendTexts adds the warnings that the caller may see.
func (a *asked) appendTexts(texts []string, warnings []matching.Warning) []string {
	var shown []string
	for _, text := range appendTexts(nil, a.left.warnings(warnings, a.policies)) {
		shown = append(shown, a.left.reader.Text(text))
	}
	return addTexts(texts, shown)
}
