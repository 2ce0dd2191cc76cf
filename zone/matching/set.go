package matching

import (
	"iter"

	"github.com/causeway-mesh/causeway/resources"
)

// Set holds policies of any types and meshes, at most one of a key, so that each proxy is checked only against those
// that may select it: each policy is filed under one condition that a proxy must meet. It is not safe for concurrent
// use.
type Set struct {
	byKey       map[resources.Key]filed
	byCondition map[Condition][]*Policy
	// labels counts how many policies require each label: each policy is filed under its rarest label at that time.
	labels map[label]int
}

// filed is a policy, the condition under which the set has it, and its position there.
type filed struct {
	policy *Policy
	under  Condition
	at     int
}

// NewSet returns an empty set.
func NewSet() *Set {
	return &Set{byKey: map[resources.Key]filed{}, byCondition: map[Condition][]*Policy{}, labels: map[label]int{}}
}

// Add adds p, replacing the policy with the same key. It returns the condition that a proxy must meet.
func (s *Set) Add(p *Policy) Condition {
	s.Remove(p.Resource.Key)
	s.count(p, 1)
	f := s.file(p)
	s.byKey[p.Resource.Key] = f
	return f.under
}

// file adds p to those under its condition.
func (s *Set) file(p *Policy) filed {
	under := conditionOf(p, s.labels)
	s.byCondition[under] = append(s.byCondition[under], p)
	return filed{p, under, len(s.byCondition[under]) - 1}
}

// Remove removes the policy of a key, if there is one.
func (s *Set) Remove(key resources.Key) {
	f, ok := s.byKey[key]
	if !ok {
		return
	}
	delete(s.byKey, key)
	s.count(f.policy, -1)
	others := s.byCondition[f.under]
	last := others[len(others)-1]
	if last != f.policy {
		others[f.at] = last
		s.byKey[last.Resource.Key] = filed{last, f.under, f.at}
	}
	others[len(others)-1] = nil
	if s.byCondition[f.under] = others[:len(others)-1]; len(others) == 1 {
		delete(s.byCondition, f.under)
	}
}

// Clear removes all policies.
func (s *Set) Clear() {
	clear(s.byKey)
	clear(s.byCondition)
	clear(s.labels)
}

// Get returns the policy of a key, or nil, and the condition that a proxy must meet.
func (s *Set) Get(key resources.Key) (*Policy, Condition) {
	f := s.byKey[key]
	return f.policy, f.under
}

// All yields all policies, in no order. The set must not change meanwhile.
func (s *Set) All() iter.Seq[*Policy] {
	return func(yield func(*Policy) bool) {
		for _, f := range s.byKey {
			if !yield(f.policy) {
				return
			}
		}
	}
}

// Candidates returns a superset of the policies that select the proxy, in no order.
func (s *Set) Candidates(proxy *Proxy) []*Policy {
	var out []*Policy
	for c := range Conditions(proxy) {
		out = append(out, s.byCondition[c]...)
	}
	return out
}

// count adds n to the number of policies that require each of p's labels.
func (s *Set) count(p *Policy, n int) {
	for k, v := range p.Target.Labels {
		l := label{k, v}
		if s.labels[l] += n; s.labels[l] == 0 {
			delete(s.labels, l)
		}
	}
}
