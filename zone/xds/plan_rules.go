package xds

import (
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// rulesKey is everything that the rules of one type in a plan depend on.
type rulesKey struct {
	typ                   resources.Type
	policies              string
	only, tagged          string
	mesh, zone, namespace string
	dests                 *matching.Destinations
}

// toRules returns the rules of one type. Plans share them, so that a change of one type leaves those of the others. The
// rules of a gateway also depend on its routes.
func (s *sender) toRules(input matching.ToInput, only string) (*matching.ToRules, error) {
	build := func() (*matching.ToRules, error) {
		rules := matching.To(input)
		return &rules, nil
	}
	if s.target.gateway != nil {
		return build()
	}
	of := input.Proxy
	return s.target.shared.rules.get(rulesKey{typ: input.Type, policies: matching.Selected(of, input.Policies, input.Type),
		only: only, tagged: taggedText(s.tagged), mesh: of.Key.Mesh, zone: of.Zone, namespace: of.Namespace, dests: s.dests}, build)
}

// keysText returns services as text.
func keysText(keys map[matching.ResourceKey]bool) string {
	texts := make([]string, 0, len(keys))
	for key := range keys {
		texts = append(texts, key.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}
