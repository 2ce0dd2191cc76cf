package archive

import "errors"

var (
	// ErrDamaged: the file is not, or no longer, what was written.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrFormat: a newer version wrote the file.
	ErrFormat = errors.New("the backup's format is too new")
	// ErrClear: a file beside the store has a key in the clear. Nothing was written of it.
	ErrClear = errors.New("a key in the clear does not belong in a backup")
)
