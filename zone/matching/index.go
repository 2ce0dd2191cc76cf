package matching

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Index is a Set that does not change and keeps the order of Compare. It is safe for concurrent use.
type Index struct {
	set *Set // nothing is looked up by key
	// rank is each policy's position in the order of Compare.
	rank map[*Policy]int
	// gone are policies of the set that the index does not have, aside those that it has besides, in the order of Compare.
	gone  map[*Policy]bool
	aside []*Policy
}

// maxAside bounds the policies by which an index differs from its set: each of them costs every question a little.
const maxAside = 64

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

// With returns the index with some policies added and others, which it has, gone. The index itself stays as it is. ok is
// false if it differs from its last NewIndex by too many policies: a new index is cheaper then.
func (x *Index) With(added, gone []*Policy) (next *Index, ok bool) {
	if len(x.aside)+len(x.gone)+len(added)+len(gone) > maxAside {
		return nil, false
	}
	next = &Index{set: x.set, rank: x.rank, gone: map[*Policy]bool{}}
	maps.Copy(next.gone, x.gone)
	for _, p := range gone {
		next.gone[p] = true
	}
	for _, p := range slices.Concat(x.aside, added) {
		if !next.gone[p] {
			next.aside = append(next.aside, p)
		}
	}
	sortPolicies(next.aside)
	return next, true
}

// Candidates returns, in the order of Compare, a superset of the policies that select the proxy.
func (x *Index) Candidates(proxy *Proxy) []*Policy {
	out := x.set.Candidates(proxy)
	if len(x.gone) > 0 {
		out = slices.DeleteFunc(out, func(p *Policy) bool { return x.gone[p] })
	}
	slices.SortFunc(out, func(a, b *Policy) int { return cmp.Compare(x.rank[a], x.rank[b]) })
	if len(x.aside) == 0 {
		return out
	}
	out = append(out, x.aside...)
	sortPolicies(out)
	return out
}

// Any yields what Candidates returns, in no order.
func (x *Index) Any(proxy *Proxy) iter.Seq[*Policy] {
	return func(yield func(*Policy) bool) {
		for _, p := range x.aside {
			if !yield(p) {
				return
			}
		}
		for c := range Conditions(proxy) {
			for _, p := range x.set.byCondition[c] {
				if !x.gone[p] && !yield(p) {
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
