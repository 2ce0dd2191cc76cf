package resources

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnknownType is wrapped by errors about a type that the registry does not know.
var ErrUnknownType = errors.New("unknown resource type")

// FieldProblem says what is wrong with one field and what would be right.
type FieldProblem struct {
	// Field is a path as in the document: `spec.rules[0].default.allow[1].spiffeId.value`.
	Field string
	// Reason is lower-case and says what would be right.
	Reason string
	// Line is where the field stands in its document, or zero.
	Line int
}

// InvalidError is what Decode and Validate return for a resource that must not be stored. It lists every problem found.
type InvalidError struct {
	Key      Key
	Problems []FieldProblem
	// Document is the place of the resource in its body, the first being 1, or zero when it is not known.
	Document int
}

func (e *InvalidError) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.String()
	}
	return fmt.Sprintf("%s is not valid: %s", e.Subject(), strings.Join(parts, "; "))
}

// Subject names what is not valid: the resource as far as it is known, and its document where there are several.
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

// String is `field: reason (line 7)`.
func (p FieldProblem) String() string { return p.Field + ": " + p.ReasonAt() }

// ReasonAt is the reason, with the line where it is known.
func (p FieldProblem) ReasonAt() string {
	if p.Line == 0 {
		return p.Reason
	}
	return fmt.Sprintf("%s (line %d)", p.Reason, p.Line)
}

// DocumentsError is what DecodeDocuments returns for a body of which nothing may be stored: one InvalidError for each
// bad document.
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
