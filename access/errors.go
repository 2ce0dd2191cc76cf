package access

import (
	"errors"
	"fmt"
)

// ErrAudit: the audit log cannot be written, so nothing is done that would belong into it.
var ErrAudit = errors.New("the audit log cannot be written")

// DeniedError says which permission somebody lacks.
type DeniedError struct {
	Subject Subject
	Missing Action
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s lacks the permission: %s", e.Subject.Name, e.Missing)
}

// LoginError says why a credential is no proof. Reason is for the audit log; a peer is only told Hint.
type LoginError struct {
	Reason string
	// Hint says what a caller could do; it says nothing about other credentials than the one that was shown.
	Hint string
	// Claimed is who the credential says it is for, where that could be read; nothing of it is proven.
	Claimed string
	Method  Method
}

func (e *LoginError) Error() string { return e.Reason }

// OriginError refuses a request that a browser may have made for a page of somebody else.
type OriginError struct{ Reason string }

func (e *OriginError) Error() string { return e.Reason }

// GrantError refuses a change of roles or bindings by somebody who may write them.
type GrantError struct{ Reason string }

func (e *GrantError) Error() string { return e.Reason }
