package matching

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// maxSubsets limits the number of tag combinations of one list of rules.
const maxSubsets = 1024

// SubsetRule is the merged conf for the clients or destinations with certain tags.
type SubsetRule struct {
	// Matchers must all hold; none means everyone. They are sorted by key and value.
	Matchers []Matcher
	// Conf is canonical JSON.
	Conf json.RawMessage
	// Origins are the merged items, in merge order.
	Origins []Origin
}

// Matcher is one condition on a tag: it has the value, or, with Not, it does not.
type Matcher struct {
	Key, Value string
	Not        bool
}

// subset is a sorted set of required tags. An empty subset means everyone.
type subset []label

// covers reports whether every client in o is also in s.
func (s subset) covers(o subset) bool {
	for _, l := range s {
		if !slices.Contains(o, l) {
			return false
		}
	}
	return true
}

// subsetItem is an item with the subset that it is for.
type subsetItem struct {
	subset subset
	item   *item
}

// subsetRules returns, for sorted items, one rule for every combination of the required tags to which some item
// applies. The most specific rule, with the most required tags, comes first. A tag has one value, so combinations with
// two values are left out. If there would be more than maxSubsets combinations, subsetRules returns only the rule for
// everyone, and the problem reports it. Sources: seed 002, "Context and Problem Statement"; Kuma's rules by tags
// (fromRules).
func subsetRules(items []subsetItem) ([]SubsetRule, string) {
	tags := tagValues(items)
	total := 1
	for _, t := range tags {
		total *= len(t.values) + 1
		if total > maxSubsets {
			return everybodyRules(items), fmt.Sprintf("together with other policies asks for more than %d combinations of tags: only what applies to everybody is computed", maxSubsets)
		}
	}
	var rules []SubsetRule
	chosen := make([]int, len(tags))
	for {
		if rule, ok := subsetRule(items, tags, chosen); ok {
			rules = append(rules, rule)
		}
		if !next(chosen, tags) {
			break
		}
	}
	slices.SortStableFunc(rules, func(a, b SubsetRule) int {
		return cmp.Or(cmp.Compare(positives(b.Matchers), positives(a.Matchers)),
			slices.CompareFunc(a.Matchers, b.Matchers, compareMatchers))
	})
	return rules, ""
}

// tagValue is a tag with the values that items require, sorted.
type tagValue struct {
	key    string
	values []string
}

func tagValues(items []subsetItem) []tagValue {
	var all []label
	for _, it := range items {
		all = append(all, it.subset...)
	}
	slices.SortFunc(all, compareLabels)
	all = slices.Compact(all)
	var tags []tagValue
	for _, l := range all {
		if len(tags) == 0 || tags[len(tags)-1].key != l.key {
			tags = append(tags, tagValue{key: l.key})
		}
		last := &tags[len(tags)-1]
		last.values = append(last.values, l.value)
	}
	return tags
}

// next advances to the next combination. The choice after the last value of a tag means "none of these".
func next(chosen []int, tags []tagValue) bool {
	for i := range chosen {
		if chosen[i]++; chosen[i] <= len(tags[i].values) {
			return true
		}
		chosen[i] = 0
	}
	return false
}

func subsetRule(items []subsetItem, tags []tagValue, chosen []int) (SubsetRule, bool) {
	var have subset
	var rule SubsetRule
	for i, t := range tags {
		if chosen[i] < len(t.values) {
			have = append(have, label{t.key, t.values[chosen[i]]})
			rule.Matchers = append(rule.Matchers, Matcher{Key: t.key, Value: t.values[chosen[i]]})
			continue
		}
		for _, v := range t.values {
			rule.Matchers = append(rule.Matchers, Matcher{Key: t.key, Value: v, Not: true})
		}
	}
	var holding []*item
	for _, it := range items {
		if it.subset.covers(have) {
			holding = append(holding, it.item)
		}
	}
	rule.Conf, rule.Origins = mergeItems(holding)
	return rule, len(holding) > 0
}

func everybodyRules(items []subsetItem) []SubsetRule {
	items = slices.DeleteFunc(slices.Clone(items), func(it subsetItem) bool { return len(it.subset) > 0 })
	if rule, ok := subsetRule(items, nil, nil); ok {
		return []SubsetRule{rule}
	}
	return nil
}

func positives(matchers []Matcher) int {
	n := 0
	for _, m := range matchers {
		if !m.Not {
			n++
		}
	}
	return n
}

func compareMatchers(a, b Matcher) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), compareBools(a.Not, b.Not))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
