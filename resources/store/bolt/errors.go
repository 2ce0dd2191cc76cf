package bolt

import "errors"

var (
	// ErrInUse: another process has the file open.
	ErrInUse = errors.New("in use by another process")
	// ErrDamaged: the file is not, or no longer, what a store wrote. Nothing was changed in it.
	ErrDamaged = errors.New("damaged")
	// ErrFormat: the file was written by a newer version.
	ErrFormat = errors.New("format is too new")
)
