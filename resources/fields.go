package resources

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Field describes one field of a type's spec, for a reference that people read.
type Field struct {
	// Path is where the field stands in the spec: to[].targetRef.kind. [] is an item of a list, {} a value of an object whose
	// keys are free.
	Path string
	// Kind is what its value is, in words: text, true or false, a list of objects.
	Kind string
	// Limits are what else is asked of the value before it is looked at more closely: the names of an enumeration, the
	// range of a number. Empty where there are none.
	Limits string
	// Origin is the Go type and the field that it becomes, or the protobuf message and the field: MeshService.Ports.
	Origin string
}

// Fields lists the fields of a type's spec, sorted by path at each level, parents before children; none for a type that
// the registry does not know. They are those that a document is held against when it is decoded.
func Fields(t Type) []Field {
	s, ok := schemas[t]
	if !ok {
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

// kind says in words what a value of the schema is.
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
