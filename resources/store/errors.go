package store

import "errors"

var (
	// ErrConflict: the resource was not in the state that the condition names. Read it again and decide anew.
	ErrConflict = errors.New("conflict: the resource was changed in between")
	// ErrNotFound: there is no resource under the key.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: the write could not be made durable and did not happen; it may be tried again.
	ErrUnavailable = errors.New("the store cannot write")
	// ErrInvalid: the batch has a resource that no store could give back as it was: a programming error of the caller.
	ErrInvalid = errors.New("cannot be stored")
	// ErrUncertain, always together with ErrUnavailable: the store was lost while it wrote, and the write may show after all.
	// Only stores on other machines have this; read again before you decide.
	ErrUncertain = errors.New("the write may have happened all the same")
	// ErrChecksum: an entry of a durable store is not what was written.
	ErrChecksum = errors.New("checksum does not match")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)
