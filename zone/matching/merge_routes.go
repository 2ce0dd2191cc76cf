package matching

import "slices"

// mergeRoutes merges the confs of two route items. Hostnames add up, and so do rules. A rule with the same matches as
// an earlier one replaces it, because only one rule may match each request. Source: seed 000, "Problem 2".
func mergeRoutes(target, patch any) any {
	t, _ := target.(map[string]any)
	p, _ := patch.(map[string]any)
	out := mergePatch(t, p).(map[string]any)
	if rules := mergeRules(listOf(t, "rules"), listOf(p, "rules")); len(rules) > 0 {
		out["rules"] = rules
	}
	hostnames, known := slices.Clone(listOf(t, "hostnames")), map[string]bool{}
	for _, h := range hostnames {
		known[string(encodeConf(h))] = true
	}
	for _, h := range listOf(p, "hostnames") {
		if text := string(encodeConf(h)); !known[text] {
			known[text], hostnames = true, append(hostnames, h)
		}
	}
	if len(hostnames) > 0 {
		out["hostnames"] = hostnames
	}
	return out
}

func listOf(conf map[string]any, name string) []any {
	list, _ := conf[name].([]any)
	return list
}

func mergeRules(have, add []any) []any {
	all := slices.Concat(have, add)
	last := make(map[string]int, len(all)) // by matches: one policy may have thousands
	replaced := make([]bool, len(all))
	for i, rule := range all {
		text := matchesOf(rule)
		if at, same := last[text]; same && i >= len(have) {
			replaced[at] = true
		}
		last[text] = i
	}
	out := all[:0]
	for i, rule := range all {
		if !replaced[i] {
			out = append(out, rule)
		}
	}
	return out
}

// matchesOf returns the canonical form of a rule's matches.
func matchesOf(rule any) string {
	fields, _ := rule.(map[string]any)
	return string(encodeConf(fields["matches"]))
}
