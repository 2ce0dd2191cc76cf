package rbac

import (
	"cmp"
	"slices"
	"strings"

	xdsmatcher "github.com/cncf/xds/go/xds/type/matcher/v3"

	"github.com/causeway-mesh/causeway/resources"
)

// identityKey is one key of a map: an identity, or a prefix of identities.
type identityKey struct {
	value string
	exact bool
	// at is the position of the first item among all items.
	at    int
	items []item
}

func (k *identityKey) compare(o *identityKey) int {
	switch c := strings.Compare(k.value, o.value); {
	case c != 0:
		return c
	case k.exact != o.exact && k.exact:
		return 1
	case k.exact != o.exact:
		return -1
	}
	return cmp.Compare(k.at, o.at)
}

// writeTree writes items as a map of exact identities, followed by a map of prefixes. The answer under each key
// accounts for all items that match the key: its own and those of all shorter prefixes, in the order of the list. So an
// exact allow never beats a prefix deny. It does not matter whether Envoy tries shorter prefixes when a key has no
// answer: they have no answer either.
func writeTree(items []item, otherwise *onMatch) *onMatch {
	keys := keysOf(items)
	exacts := 0
	for i := range keys {
		if keys[i].exact {
			exacts++
		}
	}
	exact, prefix := make(map[string]*onMatch, exacts), make(map[string]*onMatch, len(keys)-exacts)
	var enclosing []*identityKey // prefixes of the current key, each a prefix of the next
	for i := range keys {
		key := &keys[i]
		for len(enclosing) > 0 && !strings.HasPrefix(key.value, enclosing[len(enclosing)-1].value) {
			enclosing = enclosing[:len(enclosing)-1]
		}
		if answering := answersOf(key, enclosing); answering != nil {
			if key.exact {
				exact[key.value] = writeAnswer(answering)
			} else {
				prefix[key.value] = writeAnswer(answering)
			}
		}
		if !key.exact {
			enclosing = append(enclosing, key)
		}
	}
	if len(prefix) > 0 {
		otherwise = ask(identityMap(&xdsmatcher.Matcher_MatcherTree{TreeType: &xdsmatcher.Matcher_MatcherTree_PrefixMatchMap{
			PrefixMatchMap: &xdsmatcher.Matcher_MatcherTree_MatchMap{Map: prefix},
		}}, otherwise))
	}
	if len(exact) > 0 {
		otherwise = ask(identityMap(&xdsmatcher.Matcher_MatcherTree{TreeType: &xdsmatcher.Matcher_MatcherTree_ExactMatchMap{
			ExactMatchMap: &xdsmatcher.Matcher_MatcherTree_MatchMap{Map: exact},
		}}, otherwise))
	}
	return otherwise
}

func identityMap(tree *xdsmatcher.Matcher_MatcherTree, otherwise *onMatch) *xdsmatcher.Matcher {
	tree.Input = uriSAN
	return &xdsmatcher.Matcher{MatcherType: &xdsmatcher.Matcher_MatcherTree_{MatcherTree: tree}, OnNoMatch: otherwise}
}

// keysOf gathers the items under their keys, sorted so that a prefix comes before all keys that begin with it.
func keysOf(items []item) []identityKey {
	keys := make([]identityKey, len(items))
	for i, it := range items {
		t := it.entry.identity[0]
		// Most keys have one item, which stays in place.
		keys[i] = identityKey{value: t.value, exact: t.kind == resources.MatchExact, at: i, items: items[i : i+1 : i+1]}
	}
	slices.SortFunc(keys, func(a, b identityKey) int { return a.compare(&b) })
	n := 0
	for i := range keys {
		if n > 0 && keys[n-1].value == keys[i].value && keys[n-1].exact == keys[i].exact {
			keys[n-1].items = append(keys[n-1].items, keys[i].items...)
			continue
		}
		keys[n] = keys[i]
		n++
	}
	return keys[:n]
}

// answersOf returns the items that can decide under a key, by rank, up to the first that needs only the identity. It
// returns nil if none of them is the key's own: then the longest enclosing prefix gives the same answer.
func answersOf(key *identityKey, enclosing []*identityKey) []item {
	if len(enclosing) == 0 && len(key.items) == 1 {
		return key.items
	}
	var all []item
	for _, e := range enclosing {
		all = append(all, e.items...)
	}
	all = append(all, key.items...)
	// The sort is stable: within a rank, items of shorter prefixes come first.
	slices.SortStableFunc(all, func(a, b item) int { return cmp.Compare(a.rank, b.rank) })
	own := map[*entry]bool{}
	for _, it := range key.items {
		own[it.entry] = true
	}
	for i, it := range all {
		if it.entry.hasConditions() {
			continue
		}
		// Earlier items of this rank have the same action, so they can be dropped.
		first := i
		for first > 0 && all[first-1].rank == it.rank {
			first--
		}
		all = append(all[:first], it)
		break
	}
	if !slices.ContainsFunc(all, func(it item) bool { return own[it.entry] }) {
		return nil
	}
	return all
}

// writeAnswer writes the answer for an identity: an action, or a list of conditions that may have no answer.
func writeAnswer(items []item) *onMatch {
	var matchers []*fieldMatcher
	var last *onMatch
	for group := range ranks(items) {
		var predicates []*predicate
		for _, it := range group {
			if !it.entry.hasConditions() {
				last = it.step.decision
				break
			}
			rest := *it.entry
			rest.identity = nil
			predicates = append(predicates, entryPredicate(&rest))
		}
		if last == nil {
			matchers = append(matchers, &fieldMatcher{Predicate: anyOf(predicates), OnMatch: group[0].step.decision})
		}
	}
	if len(matchers) == 0 {
		return last
	}
	return ask(matcherList(matchers, last))
}
