package credential

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replacement is what a file is replaced with, as a whole: until Commit, and if that fails, the file stays as it was.
type Replacement struct {
	path string
	next *os.File
}

// nextOf is where the replacement of a file is until it takes its place. What an earlier process that was killed left
// there is removed.
func nextOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".next")
}

// Replace begins to replace a file that only its owner may read, and reserves room for so many bytes, so that Commit does
// not fail for lack of it. It creates the folder. The caller holds the file (see Hold), and calls Discard in the end.
func Replace(path string, room int) (*Replacement, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := removeAny(nextOf(path)); err != nil {
		return nil, err
	}
	next, err := os.OpenFile(nextOf(path), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	r := &Replacement{path: path, next: next}
	if _, err = next.Write(bytes.Repeat([]byte{' '}, room)); err == nil {
		err = next.Sync() // some file systems say only now that there is no room
	}
	if err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// Commit puts the content into the file's place.
func (r *Replacement) Commit(content []byte) error {
	_, err := r.next.WriteAt(content, 0)
	if err := errors.Join(err, r.next.Truncate(int64(len(content))), r.next.Sync(), r.next.Close()); err != nil {
		return err
	}
	return os.Rename(r.next.Name(), r.path)
}

// Discard removes what was not committed.
func (r *Replacement) Discard() {
	_ = r.next.Close()
	_ = os.Remove(r.next.Name())
}

// Remove removes a file, and what a process that was killed while it replaced the file has left of it. The caller holds
// the file. It does not fail if there is none.
func Remove(path string) error { return errors.Join(removeAny(nextOf(path)), removeAny(path)) }

func removeAny(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
