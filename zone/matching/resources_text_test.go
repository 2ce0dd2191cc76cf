package matching_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/zone/matching"
)

// ruleWant is an expected rule: its matchers as `key=value` and `key!=value`, its match, its conf and the origins
// `policy#index`.
type ruleWant struct {
	Tags    []string       `yaml:"tags,omitempty"`
	Match   map[string]any `yaml:"match,omitempty"`
	Conf    map[string]any
	Origins []string
}

func (w ruleWant) text() string {
	if w.Conf == nil && len(w.Origins) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s %s %s %s", strings.Join(w.Tags, ","), jsonOf(w.Match), jsonOf(w.Conf),
		strings.Join(w.Origins, ","))
}

func jsonOf(m map[string]any) string {
	if m == nil {
		return "-"
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// rawMap decodes a conf for comparison.
func rawMap(raw json.RawMessage) map[string]any {
	var m map[string]any
	if len(raw) > 0 && json.Unmarshal(raw, &m) != nil {
		return map[string]any{"not an object": string(raw)}
	}
	return m
}

func originNames(origins []matching.Origin) []string {
	var out []string
	for _, o := range origins {
		out = append(out, fmt.Sprintf("%s#%d", o.KRI().Name, o.RuleIndex))
	}
	return out
}

func resourceText(r *matching.ResourceRule) string {
	if r == nil {
		return "none"
	}
	return ruleWant{Conf: rawMap(r.Conf), Origins: originNames(r.Origins)}.text()
}

func subsetTexts(rules []matching.SubsetRule) []string {
	out := []string{}
	for _, r := range rules {
		w := ruleWant{Conf: rawMap(r.Conf), Origins: originNames(r.Origins)}
		for _, m := range r.Matchers {
			sign := "="
			if m.Not {
				sign = "!="
			}
			w.Tags = append(w.Tags, m.Key+sign+m.Value)
		}
		out = append(out, w.text())
	}
	return out
}

func wantTexts(wants []ruleWant) []string {
	out := []string{}
	for _, w := range wants {
		out = append(out, w.text())
	}
	return out
}

func permissionTexts(t testing.TB, rules []matching.Rule) []string {
	out := []string{}
	for _, r := range rules {
		conf, err := json.Marshal(r.Conf)
		if err != nil {
			t.Fatal(err)
		}
		text := string(conf)
		if r.Closed {
			text = "closed"
		}
		out = append(out, fmt.Sprintf("%s#%d %s", r.Origin.Name, r.Index, text))
	}
	return out
}
