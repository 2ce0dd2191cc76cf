package resources

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnknownType reports that the registry does not know a type. Other errors wrap it.
var ErrUnknownType = errors.New("unknown resource type")

// FieldProblem describes the problem of one field and how to correct it.
type FieldProblem struct {
	// Field is the path in the document: `spec.rules[0].default.allow[1].spiffeId.value`.
	Field string
	// Reason is lower-case and says how to correct the field.
	Reason string
	// Line is the line of the field in its document, or zero if it is unknown.
	Line int
}

// InvalidError reports that a resource must not be stored. Decoding and validation return it with every problem they
// found.
type InvalidError struct {
	Key      Key
	Problems []FieldProblem
	// Document is the position of the resource in its body, counted from 1, or zero if it is unknown.
	Document int
}

func (e *InvalidError) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.String()
	}
	return fmt.Sprintf("%s is not valid: %s", e.Subject(), strings.Join(parts, "; "))
}

// Subject names the invalid resource as far as known, and its document if there are several.
func (e *InvalidError) Subject() string {
	switch key := shorten(strings.TrimSpace(e.Key.String())); {
	case key == "":
		return fmt.Sprintf("document %d", max(e.Document, 1))
	case e.Document > 0:
		return fmt.Sprintf("document %d (%s)", e.Document, key)
	default:
		return key
	}
}

// String returns `field: reason (line 7)`.
func (p FieldProblem) String() string { return p.Field + ": " + p.ReasonAt() }

// ReasonAt returns the reason, with the line if it is known.
func (p FieldProblem) ReasonAt() string {
	if p.Line == 0 {
		return p.Reason
	}
	return fmt.Sprintf("%s (line %d)", p.Reason, p.Line)
}

// DocumentsError reports that nothing in a body may be stored. It holds one InvalidError per invalid document.
type DocumentsError struct {
	Invalid []*InvalidError
}

func (e *DocumentsError) Error() string {
	parts := make([]string, len(e.Invalid))
	for i, invalid := range e.Invalid {
		parts[i] = invalid.Error()
	}
	return strings.Join(parts, "\n")
}

// Unwrap lets errors.As find the first InvalidError.
func (e *DocumentsError) Unwrap() []error {
	out := make([]error, len(e.Invalid))
	for i, invalid := range e.Invalid {
		out[i] = invalid
	}
	return out
}
