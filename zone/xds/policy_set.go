package xds

import (
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// policySet holds policies under what a proxy must have for them to select it: a policy can only select a proxy that has
// its hook.
type policySet struct {
	byKey  map[resources.Key]*matching.Policy
	byHook map[hook]map[resources.Key]*matching.Policy
}

func newPolicySet() policySet {
	return policySet{byKey: map[resources.Key]*matching.Policy{}, byHook: map[hook]map[resources.Key]*matching.Policy{}}
}

func (s *policySet) add(p *matching.Policy) {
	s.byKey[p.Resource.Key] = p
	put(s.byHook, hookOf(p), p.Resource.Key, p)
}

func (s *policySet) remove(k resources.Key) {
	if p := s.byKey[k]; p != nil {
		drop(s.byHook, hookOf(p), k)
		delete(s.byKey, k)
	}
}

func (s *policySet) clear() {
	clear(s.byKey)
	clear(s.byHook)
}

// candidates are the policies that may select a proxy, in no order.
func (s *policySet) candidates(t *target) []*matching.Policy {
	var out []*matching.Policy
	for _, h := range hooksOf(t.match) {
		for _, p := range s.byHook[h] {
			out = append(out, p)
		}
	}
	return out
}
