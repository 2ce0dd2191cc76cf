package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// selector is the value of --selector: requirements on labels. An item must meet all of them.
type selector []requirement

// requirement is one condition on the value of a label.
type requirement struct {
	key    string
	values []string
	// absent means that the label must not have one of the values or, without values, must not exist.
	absent bool
}

// maxSelector bounds a selector, in bytes.
const maxSelector = 4096

var (
	setRequirement = regexp.MustCompile(`^(\S+)\s+(in|notin)\s*\(([^()]*)\)$`)
	labelKey       = regexp.MustCompile(`^([a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?/)?[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?$`)
	labelValue     = regexp.MustCompile(`^([a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?)?$`)
)

// parseSelector parses KEY=VALUE, KEY==VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY and !KEY, separated by
// commas.
func parseSelector(text string) (selector, error) {
	if len(text) > maxSelector {
		return nil, fmt.Errorf("has %d bytes, more than %d", len(text), maxSelector)
	}
	var out selector
	for _, part := range splitSelector(text) {
		one, err := parseRequirement(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// splitSelector splits at the commas outside of parentheses.
func splitSelector(text string) []string {
	var parts []string
	begin, depth := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, text[begin:i])
				begin = i + 1
			}
		}
	}
	return append(parts, text[begin:])
}

func parseRequirement(text string) (requirement, error) {
	r := requirement{key: text}
	if m := setRequirement.FindStringSubmatch(text); m != nil {
		r = requirement{key: m[1], absent: m[2] == "notin", values: strings.Split(m[3], ",")}
		for i := range r.values {
			r.values[i] = strings.TrimSpace(r.values[i])
		}
	} else if key, value, ok := strings.Cut(text, "!="); ok {
		r = requirement{key: strings.TrimSpace(key), values: []string{strings.TrimSpace(value)}, absent: true}
	} else if key, value, ok := strings.Cut(text, "="); ok {
		r = requirement{key: strings.TrimSpace(key), values: []string{strings.TrimSpace(strings.TrimPrefix(value, "="))}}
	} else if key, ok := strings.CutPrefix(text, "!"); ok {
		r = requirement{key: strings.TrimSpace(key), absent: true}
	}
	if !labelKey.MatchString(r.key) {
		return r, fmt.Errorf("%q: want KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or !KEY", text)
	}
	for _, value := range r.values {
		if !labelValue.MatchString(value) {
			return r, fmt.Errorf("%q: %q is not the value of a label", text, value)
		}
	}
	return r, nil
}

// matches reports whether labels meet all requirements.
func (s selector) matches(labels map[string]string) bool {
	for _, r := range s {
		value, there := labels[r.key]
		met := there && (len(r.values) == 0 || slices.Contains(r.values, value))
		if met == r.absent {
			return false
		}
	}
	return true
}

// equalities returns the labels that must have one value, because a server can select those by itself.
func (s selector) equalities() map[string]string {
	out := map[string]string{}
	for _, r := range s {
		if !r.absent && len(r.values) == 1 {
			out[r.key] = r.values[0]
		}
	}
	return out
}
