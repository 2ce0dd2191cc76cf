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
	hostnames := slices.Clone(listOf(t, "hostnames"))
	for _, h := range listOf(p, "hostnames") {
		if !slices.ContainsFunc(hostnames, func(have any) bool { return string(encodeConf(have)) == string(encodeConf(h)) }) {
			hostnames = append(hostnames, h)
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
	out := slices.Clone(have)
	for _, rule := range add {
		same := slices.IndexFunc(out, func(o any) bool { return matchesOf(o) == matchesOf(rule) })
		if same >= 0 {
			out = slices.Delete(out, same, same+1)
		}
		out = append(out, rule)
	}
	return out
}

// matchesOf returns the canonical form of a rule's matches.
func matchesOf(rule any) string {
	fields, _ := rule.(map[string]any)
	return string(encodeConf(fields["matches"]))
}
