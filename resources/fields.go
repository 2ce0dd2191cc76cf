package resources

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Field describes one field of a type's spec, for reference documentation.
type Field struct {
	// Path is the path of the field in the spec: to[].targetRef.kind. [] is an item of a list, {} a value of an object
	// with free keys.
	Path string
	// Kind describes the kind of the value in words: text, true or false, a list of objects.
	Kind string
	// Limits describes further constraints on the value, such as the names of an enumeration or the range of a number.
	// It is empty if there are none.
	Limits string
	// Origin is the Go type and field, or the protobuf message and field, that the value decodes into:
	// MeshService.Ports.
	Origin string
}

// Fields lists the fields of a type's spec, sorted by path at each level, parents before children. It returns none for
// a type that the registry does not know. The decoder checks documents against the same fields.
func Fields(t Type) []Field {
	s := schemaOf(t)
	if s == nil {
		return nil
	}
	return s.list(nil, "")
}

func (s *schema) list(out []Field, path string) []Field {
	for _, name := range s.names() {
		f := s.fields[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		out = append(out, Field{Path: at, Kind: f.kind(), Limits: f.limits(), Origin: f.origin})
		inner, below := f.schema, at
		for inner.elem != nil {
			below += map[bool]string{true: "[]", false: "{}"}[inner.shape == listShape]
			inner = inner.elem
		}
		out = inner.list(out, below)
	}
	return out
}

// kind describes a value of the schema in words.
func (s *schema) kind() string {
	switch s.shape {
	case objectShape:
		return "object, of any fields"
	case fieldsShape:
		return "object"
	case mapShape:
		return "object, its values: " + s.elem.kind()
	case listShape:
		return "list of: " + s.elem.kind()
	case stringShape, enumShape:
		return "text"
	case boolShape:
		return "true or false"
	case integerShape:
		return "whole number"
	case numberShape:
		return "number"
	case stringsShape:
		return "text, or a list of it"
	case intOrStringShape:
		return "whole number or text"
	default:
		return "any value"
	}
}

func (s *schema) limits() string {
	for s.elem != nil {
		s = s.elem
	}
	switch {
	case s.shape == enumShape:
		return "one of " + strings.Join(slices.Sorted(slices.Values(s.enum)), ", ")
	case s.shape == integerShape && s.min == 0 && s.max == math.MaxUint32:
		return "not negative, 32 bits"
	case s.shape == integerShape:
		return fmt.Sprintf("%.0f to %.0f", s.min, s.max)
	}
	return ""
}
