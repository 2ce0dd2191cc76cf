package resources

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// nodeKind is the kind of a node, in JSON's terms.
type nodeKind uint8

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	stringNode
	arrayNode
	objectNode
)

func (k nodeKind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// node is one value of a YAML or JSON document, with its line.
type node struct {
	kind nodeKind
	line int
	// text is the value of a string, the literal of a number, or "true" or "false" for a boolean.
	text   string
	fields []nodeField
	items  []*node
}

// nodeField is one member of an object. Members keep the order of the document.
type nodeField struct {
	name  string
	line  int
	value *node
}

// get returns the member of that name, or nil.
func (n *node) get(name string) *node {
	for i := range n.fields {
		if n.fields[i].name == name {
			return n.fields[i].value
		}
	}
	return nil
}

// appendJSON appends n as canonical JSON: sorted keys, no white space, numbers as they were written. The output must
// match that of canonicalObject.
func (n *node) appendJSON(dst []byte) []byte {
	switch n.kind {
	case nullNode:
		return append(dst, "null"...)
	case boolNode, numberNode:
		return append(dst, n.text...)
	case stringNode:
		return appendString(dst, n.text)
	case arrayNode:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst)
		}
		return append(dst, ']')
	default:
		return n.appendObject(dst)
	}
}

func (n *node) appendObject(dst []byte) []byte {
	byName := func(a, b nodeField) int { return strings.Compare(a.name, b.name) }
	fields := n.fields
	if !slices.IsSortedFunc(fields, byName) {
		fields = slices.Clone(fields)
		slices.SortFunc(fields, byName)
	}
	dst = append(dst, '{')
	for i := range fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, fields[i].name), ':')
		dst = fields[i].value.appendJSON(dst)
	}
	return append(dst, '}')
}

// appendString appends s as a JSON string, without escaping HTML characters.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return appendEscaped(dst, s)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func appendEscaped(dst []byte, s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return append(dst, `""`...) // a string always encodes
	}
	return append(dst, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}
