package proxypatch

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/anypb"
)

// tooLarge returns what is wrong with the size of a conf, which is checked before anything is parsed.
func (c *Conf) tooLarge() *Problem {
	at, n := []string{"appendModifications"}, len(c.AppendModifications)
	switch {
	case n == 0:
		return &Problem{at, "is required"}
	case n > maxModifications:
		return &Problem{at, fmt.Sprintf("want at most %d, got %d", maxModifications, n)}
	}
	if n := c.valuesBytes(); n > maxValuesBytes {
		return &Problem{at, fmt.Sprintf("the values have %d bytes, more than %d: use several policies", n, maxValuesBytes)}
	}
	return nil
}

func notOne(at []string, parts int) Problem {
	return Problem{at, fmt.Sprintf("want exactly one of cluster, listener, networkFilter, httpFilter and virtualHost, got %d", parts)}
}

// valuesBytes returns the bytes of all values.
func (c *Conf) valuesBytes() (n int) {
	for i := range c.AppendModifications {
		for _, part := range c.AppendModifications[i].changes() {
			if part.Value != nil {
				n += len(*part.Value)
			}
			for j := range part.JSONPatches {
				n += len(part.JSONPatches[j].Value)
			}
		}
	}
	return n
}

// checker checks one change, and parses its value.
type checker struct {
	at       []string
	guarded  bool
	problems []Problem
}

func (k *checker) fail(field, format string, args ...any) {
	path := slices.Clone(k.at)
	if field != "" {
		path = append(path, strings.Split(field, ".")...)
	}
	k.problems = append(k.problems, Problem{path, fmt.Sprintf(format, args...)})
}

func (k *checker) change(c *readChange) {
	if ops := operations(c.kind); !slices.Contains(ops, c.Operation) {
		k.fail("operation", "want one of %s, got %q", strings.Join(ops, ", "), c.Operation)
		return
	}
	switch {
	case c.Operation == Add && c.matched && c.kind != kindHost:
		k.fail("match", "does not belong to the operation %s", Add)
	case c.Operation == Add && c.name != nil:
		k.fail("match.name", "does not belong to the operation %s", Add)
	case c.name == nil && (c.Operation == AddBefore || c.Operation == AddAfter):
		k.fail("match.name", "is required: the filter next to which to add")
	case c.name == nil && c.Operation == Patch && (c.kind == kindNetworkFilter || c.kind == kindHTTPFilter):
		k.fail("match.name", "is required: the filter to patch")
	}
	switch {
	case c.Operation == Remove:
		if c.Value != nil {
			k.fail("value", "does not belong to the operation %s", Remove)
		}
		k.noJSONPatches(c)
	case c.Operation != Patch:
		k.noJSONPatches(c)
		k.value(c, true)
	case c.Value != nil && len(c.JSONPatches) > 0:
		k.fail("value", "cannot be combined with jsonPatches: use one of them")
	case c.Value != nil:
		k.value(c, false)
	case len(c.JSONPatches) == 0:
		k.fail("", "the operation %s needs value or jsonPatches", Patch)
	default:
		k.jsonPatches(c)
	}
}

func (k *checker) noJSONPatches(c *readChange) {
	if len(c.JSONPatches) > 0 {
		k.fail("jsonPatches", "does not belong to the operation %s: use %s", c.Operation, Patch)
	}
}

// value parses and checks a value. An added value must be whole.
func (k *checker) value(c *readChange, whole bool) {
	if c.Value == nil {
		k.fail("value", "is required for the operation %s", c.Operation)
		return
	}
	m, err := parse(c.kind, *c.Value)
	if err != nil {
		k.fail("value", "%v", err)
		return
	}
	c.message = m
	f, isFilter := m.(interface{ GetTypedConfig() *anypb.Any })
	switch {
	case whole && nameOf(m) == "":
		k.fail("value", "name: is required")
		return
	case isFilter && f.GetTypedConfig() == nil:
		k.fail("value", "typed_config: is required")
		return
	case whole:
		if err := Validate(m); err != nil {
			k.fail("value", "Envoy does not take it: %v", err)
			return
		}
	}
	if !k.guarded {
		return
	}
	found := dangers(m, ofCallers, nil)
	if len(found) > 0 {
		k.fail("value", "%s%s", found[0].reason, NeedsVerb)
	}
	if c.Operation != Add {
		return
	}
	never := forbidden(m, found)
	c.forbidden = func() string { return never }
	if why := (&Guard{}).added(m, c.forbidden); why != "" {
		k.fail("value", "%s%s", why, NeedsVerb)
	}
}

func (k *checker) jsonPatches(c *readChange) {
	if len(c.JSONPatches) > maxJSONPatches {
		k.fail("jsonPatches", "want at most %d, got %d", maxJSONPatches, len(c.JSONPatches))
		return
	}
	for i := range c.JSONPatches {
		p := &c.JSONPatches[i]
		at := fmt.Sprintf("jsonPatches.%d", i)
		if !slices.Contains(jsonOps, p.Op) {
			k.fail(at+".op", "want one of %s, got %q", strings.Join(jsonOps, ", "), p.Op)
			continue
		}
		if _, err := pointer(p.Path); err != nil || p.Path == "" {
			k.fail(at+".path", "%q is not a JSON pointer: write /name/0/field", p.Path)
		}
		takesFrom, takesValue := p.Op == "move" || p.Op == "copy", p.Op == "add" || p.Op == "replace"
		switch {
		case takesFrom && p.From == nil:
			k.fail(at+".from", "is required for the op %s", p.Op)
		case takesFrom:
			if _, err := pointer(*p.From); err != nil || *p.From == "" {
				k.fail(at+".from", "%q is not a JSON pointer: write /name/0/field", *p.From)
			}
		case p.From != nil:
			k.fail(at+".from", "does not belong to the op %s", p.Op)
		}
		switch {
		case takesValue && len(p.Value) == 0:
			k.fail(at+".value", "is required for the op %s", p.Op)
		case !takesValue && len(p.Value) > 0:
			k.fail(at+".value", "does not belong to the op %s", p.Op)
		}
	}
}
