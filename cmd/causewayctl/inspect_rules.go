package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// typeRules is the result of the policies of one type for a proxy.
type typeRules inspect.TypeRules

// fetchRules reads `_rules`, without the types that have rules on inbounds only: the inbounds' own answers describe
// those better.
func fetchRules(ctx context.Context, client *api.Client, dataplane resources.Key) ([]typeRules, error) {
	var answer inspect.ProxyRules
	if err := fetch(ctx, client, dataplane, "/_rules", &answer); err != nil {
		return nil, aboutResource(dataplane, err)
	}
	rules := []typeRules{}
	for _, t := range answer.Rules {
		if t.ProxyRule != nil || len(t.ToResourceRules)+len(t.ToRules)+len(t.FromRules) > 0 {
			rules = append(rules, typeRules(t))
		}
	}
	return rules, nil
}

// print writes the rules of one type as text.
func (t *typeRules) print(w io.Writer) {
	if t.ProxyRule != nil {
		fmt.Fprintf(w, "\nproxy  %s%s\n", t.Type, notEnforced(t.Type, onProxy))
		(&mergedRule{conf: t.ProxyRule.Conf, origins: t.ProxyRule.Origin}).print(w)
	}
	if rules := groupAlike(append(resourceRules(t.ToResourceRules), tagRules(t.ToRules)...)); len(rules) > 0 {
		fmt.Fprintf(w, "\noutbound  %s%s\n", t.Type, notEnforced(t.Type, onOutbound))
		for _, group := range rules {
			fmt.Fprintf(w, "  %s\n", firstOf(group.names, 3))
			group.rule.print(w)
		}
	}
	for i := range t.FromRules {
		fmt.Fprintf(w, "\nfrom  %s  %s%s\n", t.Type, t.FromRules[i].Inbound.KRI, notEnforced(t.Type, onInbound))
		for _, group := range groupAlike(tagRules(t.FromRules[i].Rules)) {
			fmt.Fprintf(w, "  %s\n", firstOf(group.names, 3))
			group.rule.print(w)
		}
	}
	for _, warning := range t.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", warning)
	}
}

// mergedRule is a conf and the items that were merged into it, in order. The last one wins.
type mergedRule struct {
	// name describes the traffic that the rule applies to.
	name    string
	conf    json.RawMessage
	origins []inspect.Origin
}

// resourceRules are the rules for the traffic to services and routes.
func resourceRules(rules []inspect.ResourceRule) []mergedRule {
	var out []mergedRule
	for i := range rules {
		r := &rules[i]
		name := cmp.Or(r.KRI, string(r.ResourceMeta.Type)+" "+r.ResourceMeta.Name)
		if r.ResourceMeta.Type == resources.TypeMesh {
			name = "everything else in the mesh"
		}
		out = append(out, mergedRule{name: name, conf: r.Conf, origins: r.Origin})
	}
	return out
}

// tagRules are the rules of older policies, for peers with certain tags.
func tagRules(rules []inspect.TagRule) []mergedRule {
	var out []mergedRule
	for i := range rules {
		merged := mergedRule{name: matchersText(rules[i].Matchers), conf: rules[i].Conf}
		for _, o := range rules[i].Origin {
			merged.origins = append(merged.origins, inspect.Origin{ResourceMeta: o.Meta, KRI: o.KRI, Place: o.Place})
		}
		out = append(out, merged)
	}
	return out
}

func matchersText(matchers []inspect.TagMatcher) string {
	if len(matchers) == 0 {
		return "everybody"
	}
	var parts []string
	for _, m := range matchers {
		sign := "="
		if m.Not {
			sign = "!="
		}
		parts = append(parts, m.Key+sign+m.Value)
	}
	return strings.Join(parts, ",")
}

// print writes the merged conf, and the items behind it in the order of the merge.
func (r *mergedRule) print(w io.Writer) {
	for _, line := range yamlLines(r.conf) {
		fmt.Fprintf(w, "    %s\n", line)
	}
	printOrigins(w, "    ", r.origins)
}

// printOrigins writes the merged items in order, and why each comes after the previous one.
func printOrigins(w io.Writer, indent string, origins []inspect.Origin) {
	for i, o := range origins {
		line := fmt.Sprintf("%s%d. %s", indent, i+1, o.KRI)
		if o.DecidedBy != "" {
			line += "  (" + o.DecidedBy + ")"
		}
		if i > 0 && i == len(origins)-1 {
			line += "  <- wins"
		}
		fmt.Fprintln(w, line)
	}
}

// alikeRules are rules with the same conf and origins, and the names of their destinations.
type alikeRules struct {
	names []string
	rule  *mergedRule
}

// groupAlike keeps the order of the first rule of each group. A proxy has a rule for every service, and few differ.
func groupAlike(rules []mergedRule) []*alikeRules {
	var groups []*alikeRules
	byContent := map[string]*alikeRules{}
	for i := range rules {
		rule := &rules[i]
		content := string(rule.conf)
		for _, o := range rule.origins {
			content += fmt.Sprintf(" %s#%d", o.KRI, o.RuleIndex)
		}
		group := byContent[content]
		if group == nil {
			group = &alikeRules{rule: rule}
			byContent[content] = group
			groups = append(groups, group)
		}
		group.names = append(group.names, rule.name)
	}
	return groups
}
