package archive

import "errors"

var (
	// ErrDamaged reports that the file differs from what was written.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrFormat reports that a newer version wrote the file.
	ErrFormat = errors.New("the backup's format is too new")
	// ErrClear reports that a file beside the store has a plain-text key. Nothing was written.
	ErrClear = errors.New("a key in the clear does not belong in a backup")
)
