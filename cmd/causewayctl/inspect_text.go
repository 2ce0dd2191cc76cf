package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// print writes the view as text: the rules of each inbound in the order of evaluation, each with its policy.
func (v *dataplaneView) print(w io.Writer) error {
	connection := v.Connection.State
	if a := age(v.Connection.Since, time.Now()); a != "" {
		connection += " for " + a
	}
	if v.Connection.State == stateHidden {
		connection += ": you may not read its DataplaneInsight"
	}
	if v.Connection.Reason != "" {
		connection += ": " + v.Connection.reason()
	}
	t := &table{}
	t.add("dataplane",
		place(resources.Key{Type: resources.TypeDataplane, Mesh: v.Mesh, Namespace: v.Namespace, Name: v.Name}))
	t.add("kri", v.KRI)
	t.add("address", v.Address)
	t.add("proxy", connection)
	if err := t.print(w); err != nil {
		return err
	}
	for _, in := range v.Inbounds {
		in.print(w)
	}
	for i := range v.Rules {
		v.Rules[i].print(w)
	}
	writeKnowledge(w, v.Zones)
	return nil
}

func (in *inboundView) print(w io.Writer) {
	fmt.Fprintf(w, "\ninbound %s  port %d  %s  %s\n", cmp.Or(in.Name, "-"), in.Port, in.Protocol, in.KRI)
	if len(in.Policies) == 0 {
		fmt.Fprintln(w, "  no policies")
	}
	for _, p := range in.Policies {
		fmt.Fprintf(w, "  %s%s\n", p.Kind, notEnforced(p.Kind, onInbound))
		for i, rule := range p.Rules {
			fmt.Fprintf(w, "    %d. %s%s\n", i+1, rule.Origin, whyText(rule.DecidedBy))
			if rule.Closed {
				fmt.Fprintln(w, "       unreadable, denies everybody")
				continue
			}
			for _, line := range confLines(rule.Match, rule.Conf) {
				fmt.Fprintf(w, "       %s\n", line)
			}
			if len(rule.Origins) > 1 {
				printOrigins(w, "       ", rule.Origins)
			}
		}
		for _, warning := range p.Warnings {
			fmt.Fprintf(w, "    warning: %s\n", warning)
		}
	}
}

// whyText returns the reason for a rule's place, in parentheses.
func whyText(decidedBy string) string {
	if decidedBy == "" {
		return ""
	}
	return "  (" + decidedBy + ")"
}

// confLines shows a rule. A conf of lists of matches, such as a permission, gets one line per match; any other is shown
// as YAML.
func confLines(match, conf json.RawMessage) []string {
	var lines []string
	if len(match) > 0 && string(match) != "null" {
		lines = append(lines, "match "+matchText(match))
	}
	var lists map[string][]json.RawMessage
	if json.Unmarshal(conf, &lists) != nil {
		return append(lines, yamlLines(conf)...)
	}
	width := 0
	for name := range lists {
		width = max(width, len(name))
	}
	for _, name := range orderedLists(lists) {
		for _, entry := range lists[name] {
			lines = append(lines, fmt.Sprintf("%-*s  %s", width, name, matchText(entry)))
		}
	}
	if len(lines) == 0 {
		lines = append(lines, "no entries")
	}
	return lines
}

// orderedLists sorts the lists of a permission in the order of evaluation, deny first, and others by name.
func orderedLists(lists map[string][]json.RawMessage) []string {
	judged := []string{"deny", "allowWithShadowDeny", "allow"}
	rank := func(name string) int {
		if i := slices.Index(judged, name); i >= 0 {
			return i
		}
		return len(judged)
	}
	return slices.SortedFunc(maps.Keys(lists), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
}

// matchText returns one match in one line: `spiffeId Prefix spiffe://default.zone-1.mesh.local/ns/`.
func matchText(raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return compact(raw)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var typed resources.PathMatch // all matches have this form
		if json.Unmarshal(fields[name], &typed) == nil && typed.Value != "" {
			parts = append(parts, strings.TrimSpace(name+" "+typed.Type+" "+typed.Value))
			continue
		}
		parts = append(parts, name+" "+compact(fields[name]))
	}
	return strings.Join(parts, " and ")
}

func compact(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}

func yamlLines(raw json.RawMessage) []string {
	text, err := resources.EncodeYAML(raw)
	if err != nil {
		return []string{compact(raw)}
	}
	return strings.Split(strings.TrimRight(string(text), "\n"), "\n")
}
