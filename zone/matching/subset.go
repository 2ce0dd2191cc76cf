package matching

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// maxSubsets bounds the product of tags of one list of rules.
const maxSubsets = 1024

// SubsetRule is the merged conf for the clients or destinations with certain tags.
type SubsetRule struct {
	// Matchers all hold; none means everybody. Sorted by key, and by value.
	Matchers []Matcher
	// Conf is canonical JSON.
	Conf json.RawMessage
	// Origins are the items that were merged, in the order in which they were.
	Origins []Origin
}

// Matcher is one condition on a tag: that it has the value or, with Not, that it has not.
type Matcher struct {
	Key, Value string
	Not        bool
}

// subset is a set of tags, sorted, each of which must be there. An empty one is everybody.
type subset []label

// covers reports whether everybody in o is also in s.
func (s subset) covers(o subset) bool {
	for _, l := range s {
		if !slices.Contains(o, l) {
			return false
		}
	}
	return true
}

// subsetItem is an item together with whom it is for.
type subsetItem struct {
	subset subset
	item   *item
}

// subsetRules gives, for sorted items, one rule for every combination of the tags that they ask for which some item
// holds for: most specific first, which is the one with the most tags that must be there. A tag has one value, so
// combinations with two are left out. Where there would be more than maxSubsets combinations, only what holds for
// everybody is returned, and the problem says so.
// Source: seed 002, "Context and Problem Statement"; kuma-wire, section 8.5, fromRules.
func subsetRules(items []subsetItem) ([]SubsetRule, string) {
	tags := tagValues(items)
	total := 1
	for _, t := range tags {
		total *= len(t.values) + 1
		if total > maxSubsets {
			return everybodyRules(items), fmt.Sprintf("together with other policies asks for more than %d combinations of tags: only what holds for everybody is computed", maxSubsets)
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
		return cmp.Or(cmp.Compare(positives(b.Matchers), positives(a.Matchers)), slices.CompareFunc(a.Matchers, b.Matchers, compareMatchers))
	})
	return rules, ""
}

// tagValue is a tag with the values that items ask for, sorted.
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

// next moves on to the next combination; the choice after the last value of a tag is "none of these".
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
