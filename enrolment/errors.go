package enrolment

import "errors"

var (
	// ErrKeyring: the keys do not allow it.
	ErrKeyring = errors.New("not possible")
	// ErrNoKey: there is no such key.
	ErrNoKey = errors.New("no such key")
)
