package xds

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// repeats bounds how often a conf has the proxy do something for one request. Servers refuse more from users; a peer,
// or an earlier version, may have accepted it.
func (s *sender) repeats(field string, n *uint32, rule *matching.ResourceRule) *uint32 {
	if n == nil || *n <= resources.MostRepeats || rule == nil {
		return n
	}
	most := uint32(resources.MostRepeats)
	s.problem(originOf(rule), fmt.Sprintf("%s: the proxy takes %d, the most, in place of %d", field, most, *n))
	return &most
}
