package access

import (
	"errors"
	"fmt"
)

// ErrAudit reports that the audit log cannot be written, so that nothing may be done that belongs in it.
var ErrAudit = errors.New("the audit log cannot be written")

// ErrUnreadable reports that the audit log cannot be read, which does not mean that it is empty.
var ErrUnreadable = errors.New("the audit log cannot be read")

// DeniedError names the permission that the caller lacks.
type DeniedError struct {
	Subject Subject
	Missing Action
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s lacks the permission: %s", e.Subject.Name, e.Missing)
}

// LoginError is the reason why a credential proves nothing. Reason is for the audit log; a peer only gets Hint.
type LoginError struct {
	Reason string
	// Hint tells a caller what to do. It reveals nothing about credentials other than the presented one.
	Hint string
	// Claimed is the user that the credential claims, if it could be read. Nothing of it is proven.
	Claimed string
	Method  Method
}

func (e *LoginError) Error() string { return e.Reason }

// OriginError refuses a request that a browser may have made for a page of another site.
type OriginError struct{ Reason string }

func (e *OriginError) Error() string { return e.Reason }

// GrantError refuses a change of roles or bindings by a caller who may otherwise write them.
type GrantError struct{ Reason string }

func (e *GrantError) Error() string { return e.Reason }
