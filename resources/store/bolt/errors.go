package bolt

import "errors"

var (
	// ErrInUse reports that another process has the file open.
	ErrInUse = errors.New("in use by another process")
	// ErrDamaged reports that the file differs from what a store wrote. The file was not changed.
	ErrDamaged = errors.New("damaged")
	// ErrFormat reports that a newer version wrote the file.
	ErrFormat = errors.New("format is too new")
)
