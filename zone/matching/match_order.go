package matching

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/causeway-mesh/causeway/resources"
)

// matchPlace is how specific a match is: field by field in this order, greater is more specific.
type matchPlace struct {
	// path: none, prefix, regular expression, exact; then the longer value.
	path, pathLength int
	method           int
	headers, query   int
	// identity: none, prefix, exact; then the longer value.
	identity, identityLength int
	sni                      int
}

// sortByMatch sorts rules as the Gateway API sorts routes, extended by the client's identity: an exact path before a
// regular expression before a prefix, longer before shorter, with a method before without, more headers before fewer,
// more query parameters before fewer, an exact SPIFFE ID before a prefix, longer before shorter, with a server name
// before without. Equally specific rules keep their order. Source: seed 000, "Problem 2", step 5.
func sortByMatch[R any](rules []R, match func(*R) json.RawMessage) {
	type placed struct {
		place matchPlace
		rule  R
	}
	list := make([]placed, len(rules))
	for i := range rules {
		list[i] = placed{placeOf(match(&rules[i])), rules[i]}
	}
	slices.SortStableFunc(list, func(a, b placed) int { return -comparePlaces(a.place, b.place) })
	for i := range list {
		rules[i] = list[i].rule
	}
}

func comparePlaces(a, b matchPlace) int {
	return cmp.Or(
		cmp.Compare(a.path, b.path), cmp.Compare(a.pathLength, b.pathLength), cmp.Compare(a.method, b.method),
		cmp.Compare(a.headers, b.headers), cmp.Compare(a.query, b.query),
		cmp.Compare(a.identity, b.identity), cmp.Compare(a.identityLength, b.identityLength), cmp.Compare(a.sni, b.sni),
	)
}

// placeOf reads the known fields of a match. A field that it cannot read counts as absent.
func placeOf(raw json.RawMessage) matchPlace {
	var p matchPlace
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return p
	}
	p.path, p.pathLength = valuePlace(m["path"])
	p.identity, p.identityLength = valuePlace(m["spiffeId"])
	if _, ok := m["spiffeId"]; !ok {
		p.identity, p.identityLength = valuePlace(m["spiffeID"])
	}
	if _, ok := m["method"]; ok {
		p.method = 1
	}
	if _, ok := m["sni"]; ok {
		p.sni = 1
	}
	p.headers, p.query = lengthOf(m["headers"]), lengthOf(m["queryParams"])
	return p
}

func valuePlace(raw json.RawMessage) (kind, length int) {
	var v resources.PathMatch // all matches by a value have this form
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return 0, 0
	}
	kind = 1
	switch v.Type {
	case resources.MatchExact:
		kind = 3
	case resources.MatchRegularExpression:
		kind = 2
	}
	return kind, utf8.RuneCountInString(v.Value)
}

func lengthOf(raw json.RawMessage) int {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return 0
	}
	return len(list)
}

func fromByTags(it *item) Warning {
	return Warning{
		Policy: it.policy.KRI, Field: fmt.Sprintf("from[%d].targetRef", it.index),
		Text: "identities carry no tags, so a conf by the client's tags has no effect: write it under rules with matches",
	}
}
