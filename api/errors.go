package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/place"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Error is the error object of the API. The client returns it, and handlers may. It has the form of Kuma's HTTP API.
type Error struct {
	Type   string `json:"type"`
	Status int    `json:"status"`
	// Title describes the failed operation, Detail the reason. Both are never empty.
	Title    string `json:"title"`
	Detail   string `json:"detail"`
	Instance string `json:"instance,omitempty"`
	// InvalidParameters are the invalid fields.
	InvalidParameters []InvalidParameter `json:"invalid_parameters,omitempty"`
	// Outcome is the result of a failed request that would change something, if the server reports it: OutcomeNothing
	// or OutcomeUnknown.
	Outcome string `json:"outcome,omitempty"`
	// Details and Causes repeat the information for older clients.
	Details string  `json:"details"`
	Causes  []Cause `json:"causes,omitempty"`
}

// InvalidParameter is one field, named as in the document or the query, and the reason why it is refused.
type InvalidParameter struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
	// Document counts the documents of the body from 1. It is 0 if the field does not belong to a document.
	Document int `json:"document,omitempty"`
}

// Cause is the older form of InvalidParameter.
type Cause struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

const errorType = "/std-errors"

// Outcomes of requests that failed.
const (
	// OutcomeNothing means that nothing was stored, and nothing will be.
	OutcomeNothing = "nothing"
	// OutcomeUnknown means that the change may have happened, or may still happen. The caller must read the current
	// state, or repeat the same request.
	OutcomeUnknown = "unknown"
)

// statusClientClosed is the status of a request whose client disconnected.
const statusClientClosed = 499

// NewError returns an error of the API. detail explains how to correct the request.
func NewError(status int, title, detail string) *Error {
	return &Error{Type: errorType, Status: status, Title: title, Detail: detail}
}

// BadField returns a 400 about one field or query parameter.
func BadField(field, format string, args ...any) *Error {
	return NewError(http.StatusBadRequest, "Bad Request", "Resource is not valid").WithField(field, format, args...)
}

// NotFound returns a 404. what names the missing thing.
func NotFound(what string) *Error {
	return NewError(http.StatusNotFound, "Could not retrieve a resource", "Not found: there is no "+what)
}

// WithField adds one invalid field.
func (e *Error) WithField(field, format string, args ...any) *Error {
	e.add(field, fmt.Sprintf(format, args...))
	return e
}

func (e *Error) add(field, reason string) {
	e.InvalidParameters = append(e.InvalidParameters, InvalidParameter{Field: field, Reason: reason})
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s (%s)", e.Title, e.Detail)
	for _, p := range e.InvalidParameters {
		text += fmt.Sprintf("\n* %s: %s", p.Field, p.Reason)
	}
	return text
}

// complete fills in the fields for older clients.
func (e *Error) complete() *Error {
	c := *e
	c.Details, c.Causes = c.Detail, nil
	for _, p := range c.InvalidParameters {
		c.Causes = append(c.Causes, Cause{Field: p.Field, Message: p.Reason})
	}
	return &c
}

// with sets the outcome of a change.
func (e *Error) with(outcome string) *Error {
	e.Outcome = outcome
	return e
}

// asError maps every error that a handler returns. No other code does.
func asError(err error) *Error {
	var ours *Error
	var documents *resources.DocumentsError
	var invalid *resources.InvalidError
	var tooLarge *http.MaxBytesError
	var unstorable *store.TooLargeError
	if refused := refusal(err); refused != nil {
		return refused
	}
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &documents):
		return invalidError(documents.Invalid)
	case errors.As(err, &invalid):
		return invalidError([]*resources.InvalidError{invalid})
	case errors.As(err, &tooLarge):
		return NewError(http.StatusRequestEntityTooLarge, "Request Entity Too Large",
			fmt.Sprintf("the body is larger than %d bytes: send it in several requests", tooLarge.Limit)).
			WithField("document", "is larger than %d bytes", tooLarge.Limit)
	case errors.As(err, &unstorable):
		return NewError(http.StatusRequestEntityTooLarge, "Request Entity Too Large",
			unstorable.Error()+"; nothing was stored").
			WithField("spec", "%s", unstorable.Error()).with(OutcomeNothing)
	case errors.Is(err, store.ErrNotFound):
		return NewError(http.StatusNotFound, "Could not retrieve a resource", "Not found")
	case errors.Is(err, store.ErrConflict):
		return NewError(http.StatusConflict, "Conflict", err.Error())
	case errors.Is(err, store.ErrUncertain):
		return NewError(http.StatusServiceUnavailable, "Service Unavailable",
			err.Error()+"; read it again before you decide, or repeat the request").with(OutcomeUnknown)
	case errors.Is(err, errHeldBack):
		return NewError(http.StatusServiceUnavailable, "Service Unavailable",
			err.Error()+": repeat the request when it can").with(OutcomeUnknown)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		return NewError(http.StatusServiceUnavailable, "Service Unavailable",
			err.Error()+"; nothing was stored"+remedy(err)).with(OutcomeNothing)
	case errors.Is(err, resources.ErrUnknownType):
		return NewError(http.StatusBadRequest, "Bad Request", err.Error())
	case errors.Is(err, context.Canceled):
		return NewError(statusClientClosed, "Client Closed Request", "the client went away").with(OutcomeUnknown)
	case errors.Is(err, context.DeadlineExceeded):
		return NewError(http.StatusServiceUnavailable, "Service Unavailable",
			"the request took too long, try again").with(OutcomeUnknown)
	default:
		return NewError(http.StatusInternalServerError, "Internal Server Error",
			"the server failed; its log has the reason").with(OutcomeUnknown)
	}
}

// remedy returns what to do about a write that was not stored: a disk does not get room by trying again.
func remedy(err error) string {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return ": free space on the server's disk, and repeat the request"
	}
	return ", try again"
}

// refusal maps the errors of access. It returns nil for others.
func refusal(err error) *Error {
	var denied *access.DeniedError
	var login *access.LoginError
	var origin *access.OriginError
	var grant *access.GrantError
	switch {
	case errors.As(err, &denied):
		return NewError(http.StatusForbidden, titleDenied,
			denied.Error()+"; an AccessRole with it and an AccessRoleBinding would give it")
	case errors.As(err, &login):
		return NewError(http.StatusUnauthorized, "Invalid authentication data", "Unauthenticated: "+login.Hint)
	case errors.As(err, &origin):
		return NewError(http.StatusForbidden, titleDenied, origin.Error())
	case errors.As(err, &grant):
		return NewError(http.StatusForbidden, titleDenied, grant.Error())
	case errors.Is(err, access.ErrTooMany):
		return NewError(http.StatusTooManyRequests, "Too Many Requests", err.Error())
	case errors.Is(err, access.ErrUnreadable):
		return NewError(http.StatusServiceUnavailable, "Service Unavailable", err.Error())
	case errors.Is(err, access.ErrAudit) && errors.Is(err, place.ErrMoved):
		return NewError(http.StatusServiceUnavailable, "Service Unavailable", err.Error()).with(OutcomeNothing)
	case errors.Is(err, access.ErrAudit):
		return NewError(http.StatusServiceUnavailable, "Service Unavailable", access.ErrAudit.Error()+
			", and the server does nothing that it cannot log: see the server's log").with(OutcomeNothing)
	}
	return nil
}

const titleDenied = "Access Denied"

// invalidError lists the problems of all documents. If there are several documents, each reason names its document.
func invalidError(invalid []*resources.InvalidError) *Error {
	e := NewError(http.StatusBadRequest, "Could not process a resource", "Resource is not valid")
	for _, one := range invalid {
		for _, p := range one.Problems {
			if p.Field == "document" {
				e.Title = "Bad Request"
			}
			reason := p.ReasonAt()
			if len(invalid) > 1 || one.Document > 1 {
				reason = one.Subject() + ": " + reason
			}
			e.InvalidParameters = append(e.InvalidParameters, InvalidParameter{Field: p.Field, Reason: reason,
				Document: one.Document})
		}
	}
	return e
}
