package enrolment

import "errors"

var (
	// ErrKeyring reports that the current keys do not allow the operation.
	ErrKeyring = errors.New("the accepted zone CAs do not allow this")
	// ErrNoKey reports that there is no such key.
	ErrNoKey = errors.New("no such key")
)
