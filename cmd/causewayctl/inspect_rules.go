package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// typeRules is the result of the policies of one type for a proxy, except for its inbounds.
type typeRules struct {
	Type resources.Type `json:"type"`
	// ProxyRule is the conf for the whole proxy.
	ProxyRule *mergedRule `json:"proxyRule,omitempty"`
	// ToResourceRules apply to traffic to services and routes, ToRules and FromRules to the tags of older policies.
	ToResourceRules []mergedRule `json:"toResourceRules,omitempty"`
	ToRules         []mergedRule `json:"toRules,omitempty"`
	FromRules       []fromRules  `json:"fromRules,omitempty"`
	Warnings        []string     `json:"warnings,omitempty"`
}

// mergedRule is a conf and the items that were merged into it, in order. The last one wins.
type mergedRule struct {
	KRI      string          `json:"kri,omitempty"`
	Resource *ruleResource   `json:"resourceMeta,omitempty"`
	Matchers []tagMatcher    `json:"matchers,omitempty"`
	Conf     json.RawMessage `json:"conf"`
	Origins  []ruleOrigin    `json:"origin"`
}

type ruleResource struct {
	Type resources.Type `json:"type"`
	Name string         `json:"name"`
}

type tagMatcher struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	Not   bool   `json:"not,omitempty"`
}

type fromRules struct {
	Inbound struct {
		KRI string `json:"kri"`
	} `json:"inbound"`
	Rules []mergedRule `json:"rules"`
}

// ruleOrigin is an item of a policy.
type ruleOrigin struct {
	KRI       string `json:"kri"`
	RuleIndex int    `json:"ruleIndex"`
	// DecidedBy is the reason why the item comes after the previous one: "zone origin beats global origin".
	DecidedBy string `json:"decidedBy,omitempty"`
}

// fetchRules reads `_rules`, without the parts that the inbounds' own answers describe better.
func fetchRules(ctx context.Context, client *api.Client, dataplane resources.Key) ([]typeRules, error) {
	var answer struct {
		Rules []typeRules `json:"rules"`
	}
	if err := fetch(ctx, client, dataplane, "/_rules", &answer); err != nil {
		return nil, aboutResource(dataplane, err)
	}
	rules := []typeRules{}
	for _, t := range answer.Rules {
		if t.ProxyRule != nil || len(t.ToResourceRules)+len(t.ToRules)+len(t.FromRules) > 0 {
			rules = append(rules, t)
		}
	}
	return rules, nil
}

// print writes the rules of one type as text.
func (t *typeRules) print(w io.Writer) {
	if t.ProxyRule != nil {
		fmt.Fprintf(w, "\nproxy  %s%s\n", t.Type, notEnforced(t.Type, onProxy))
		t.ProxyRule.print(w)
	}
	if rules := groupAlike(append(t.ToResourceRules, t.ToRules...)); len(rules) > 0 {
		fmt.Fprintf(w, "\noutbound  %s%s\n", t.Type, notEnforced(t.Type, onOutbound))
		for _, group := range rules {
			fmt.Fprintf(w, "  %s\n", firstOf(group.names, 3))
			group.rule.print(w)
		}
	}
	for i := range t.FromRules {
		fmt.Fprintf(w, "\nfrom  %s  %s%s\n", t.Type, t.FromRules[i].Inbound.KRI, notEnforced(t.Type, onInbound))
		for _, group := range groupAlike(t.FromRules[i].Rules) {
			fmt.Fprintf(w, "  %s\n", firstOf(group.names, 3))
			group.rule.print(w)
		}
	}
	for _, warning := range t.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", warning)
	}
}

// print writes the merged conf, and the items behind it in the order of the merge.
func (r *mergedRule) print(w io.Writer) {
	for _, line := range ruleConf(r.Conf) {
		fmt.Fprintf(w, "    %s\n", line)
	}
	printOrigins(w, "    ", r.Origins)
}

// printOrigins writes the merged items in order, and why each comes after the previous one.
func printOrigins(w io.Writer, indent string, origins []ruleOrigin) {
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

// ruleConf returns a conf as YAML lines. Servers send some as a list of one.
func ruleConf(conf json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(conf, &list) == nil && len(list) == 1 {
		conf = list[0]
	}
	return yamlLines(conf)
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
		content := string(rule.Conf)
		for _, o := range rule.Origins {
			content += fmt.Sprintf(" %s#%d", o.KRI, o.RuleIndex)
		}
		group := byContent[content]
		if group == nil {
			group = &alikeRules{rule: rule}
			byContent[content] = group
			groups = append(groups, group)
		}
		group.names = append(group.names, rule.name())
	}
	return groups
}

// name describes the traffic that a rule applies to.
func (r *mergedRule) name() string {
	switch {
	case r.Resource != nil && r.Resource.Type == resources.TypeMesh:
		return "everything else in the mesh"
	case r.KRI != "" || r.Resource != nil:
		return cmp.Or(r.KRI, string(r.Resource.Type)+" "+r.Resource.Name)
	case len(r.Matchers) == 0:
		return "everybody"
	}
	var parts []string
	for _, m := range r.Matchers {
		sign := "="
		if m.Not {
			sign = "!="
		}
		parts = append(parts, m.Key+sign+m.Value)
	}
	return strings.Join(parts, ",")
}
