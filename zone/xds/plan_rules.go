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
	gateway               string // its routes
	mesh, zone, namespace string
	meaning               *matching.Meaning // of references
}

// toRules returns the rules of one type. Plans share them, so that a change of one type leaves those of the others, and
// one of a MeshGateway those for its routes. routes are those of input.Gateway as text.
func (s *sender) toRules(input matching.ToInput, only, routes string) (*matching.ToRules, error) {
	of := input.Proxy
	key := rulesKey{typ: input.Type, policies: matching.Selected(of, input.Policies, input.Type), only: only, gateway: routes,
		tagged: taggedText(s.tagged), mesh: of.Key.Mesh, zone: of.Zone, namespace: of.Namespace, meaning: s.dests.Meaning()}
	return s.target.shared.rules.get(key, func() (*matching.ToRules, error) {
		rules := matching.To(input)
		return &rules, nil
	})
}

// routesText returns routes, and the service ports that each sends to, as text.
func routesText(to map[matching.ResourceKey][]matching.ResourceKey) string {
	texts := make([]string, 0, len(to))
	for route, ports := range to {
		text := route.String()
		for _, port := range ports {
			text += "\t" + port.String()
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
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
