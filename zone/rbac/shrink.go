package rbac

import (
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Shrinks reports whether next may deny a client that old allows. It is false only where the entries prove it: each
// deny of next lies within one deny of old, and each allow of old within one allow of next. So it is true where two
// entries together replace one.
func Shrinks(old, next matching.Rules, protocol matching.Protocol) bool {
	oldDenies, oldAllows := entriesOf(old, protocol)
	nextDenies, nextAllows := entriesOf(next, protocol)
	return !allWithin(nextDenies, oldDenies) || !allWithin(oldAllows, nextAllows)
}

// entriesOf returns the enforced entries. Their order does not affect a verdict.
func entriesOf(rules matching.Rules, protocol matching.Protocol) (denies, allows []entry) {
	for _, s := range steps(rules, protocol, false) {
		if s.deny {
			denies = append(denies, s.entries...)
		} else {
			allows = append(allows, s.entries...)
		}
	}
	return denies, allows
}

func allWithin(list, others []entry) bool {
	return !slices.ContainsFunc(list, func(e entry) bool {
		return !slices.ContainsFunc(others, func(o entry) bool { return o.covers(&e) })
	})
}

// covers reports whether e matches whatever o matches.
func (e *entry) covers(o *entry) bool {
	return partCovers(e.identity, o.identity) && partCovers(e.sni, o.sni) && partCovers(e.path, o.path) &&
		partCovers(e.method, o.method) &&
		!slices.ContainsFunc(e.headers, func(h headerTest) bool { return !slices.Contains(o.headers, h) })
}

// partCovers compares alternatives. An empty list matches everything.
func partCovers(a, b []test) bool {
	if len(a) == 0 {
		return true
	}
	return len(b) > 0 && !slices.ContainsFunc(b, func(t test) bool {
		return !slices.ContainsFunc(a, func(wide test) bool { return wide.covers(t) })
	})
}

func (t test) covers(o test) bool {
	if t.kind == resources.MatchPrefix && o.kind != resources.MatchRegularExpression {
		return strings.HasPrefix(o.value, t.value)
	}
	return t == o
}
