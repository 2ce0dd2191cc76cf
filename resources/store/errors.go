package store

import "errors"

var (
	// ErrConflict reports that the resource is not in the state that the condition names. Read it again and decide
	// anew.
	ErrConflict = errors.New("conflict: the resource changed in the meantime")
	// ErrNotFound reports that no resource has the key.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable reports that the write could not be made durable and did not happen. The caller may try again.
	ErrUnavailable = errors.New("the store cannot write")
	// ErrInvalid reports a resource in the batch that no store could return unchanged. It is a programming error of the
	// caller.
	ErrInvalid = errors.New("cannot be stored")
	// ErrUncertain, always together with ErrUnavailable, reports that the connection to the store was lost during the
	// write, so the write may still become visible. Only stores on other machines return it. Read again before you
	// decide.
	ErrUncertain = errors.New("the write may have happened nevertheless")
	// ErrChecksum reports that an entry of a durable store differs from what was written.
	ErrChecksum = errors.New("checksum does not match")
	// ErrClosed reports that the store was closed.
	ErrClosed = errors.New("the store is closed")
)
