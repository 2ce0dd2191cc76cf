package place

import (
	"errors"
	"os"
	"path/filepath"
)

// Rename moves a file durably: once it returns nil, a power failure loses neither the content nor the new name. It
// replaces an existing file at to. Both are on one file system. Errors are the operating system's.
func Rename(from, to string) error {
	if err := flush(from); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return flush(filepath.Dir(to))
}

// flush syncs a file, or the names in a folder, to the disk.
func flush(path string) error {
	f, err := os.Open(path) //nolint:gosec // the path is the operator's choice
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
