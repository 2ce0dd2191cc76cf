package matching

import (
	"cmp"
	"iter"
	"slices"
)

// Index is a Set that does not change and keeps the order of Compare. It is safe for concurrent use.
type Index struct {
	set *Set // nothing is found by key
	// rank is each policy's position in the order of Compare.
	rank map[*Policy]int
}

// NewIndex indexes the policies, of which no two have the same key. Apart from sorting, it takes time and memory linear
// in their number.
func NewIndex(policies []*Policy) *Index {
	sorted := slices.Clone(policies)
	sortPolicies(sorted)
	x := &Index{set: &Set{byCondition: map[Condition][]*Policy{}, labels: map[label]int{}},
		rank: make(map[*Policy]int, len(sorted))}
	for i, p := range sorted {
		x.rank[p] = i
		x.set.count(p, 1)
	}
	for _, p := range sorted {
		x.set.file(p)
	}
	return x
}

// Candidates returns, in the order of Compare, a superset of the policies that select the proxy.
func (x *Index) Candidates(proxy *Proxy) []*Policy {
	out := x.set.Candidates(proxy)
	slices.SortFunc(out, func(a, b *Policy) int { return cmp.Compare(x.rank[a], x.rank[b]) })
	return out
}

// Any yields what Candidates returns, in no order.
func (x *Index) Any(proxy *Proxy) iter.Seq[*Policy] {
	return func(yield func(*Policy) bool) {
		for c := range Conditions(proxy) {
			for _, p := range x.set.byCondition[c] {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// Inbound calls the function Inbound with all policies of the index.
func (x *Index) Inbound(proxy *Proxy, in *InboundPort) Rules {
	return Inbound(proxy, in, x.Candidates(proxy))
}
