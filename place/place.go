package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrMoved reports that the path leads to nothing, or to something other than what was opened.
var ErrMoved = errors.New("is no longer what this process has opened")

// Place is an open file or folder, and the path that must lead to it. It stays open so that no other file can get its
// inode.
type Place struct {
	path string
	file *os.File
	was  state
	// borrowed means that the caller of Of closes file.
	borrowed bool
}

// Hold opens the file or folder at path, which Close releases. Errors are the operating system's.
func Hold(path string) (*Place, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p, err := Of(path, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p.borrowed = false
	return p, nil
}

// Of returns the place of a file that the caller has opened at path and closes after the last Check.
func Of(path string, f *os.File) (*Place, error) {
	was, err := stateIn(f)
	if err != nil {
		return nil, err
	}
	// The path must not depend on the working directory, which may change until the restart finds the same folder by
	// name.
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	return &Place{path: path, file: f, was: was, borrowed: true}, nil
}

// Check returns nil while the path leads to what was opened. It costs one system call. Its error wraps ErrMoved or is
// that of the system call.
func (p *Place) Check() error {
	_, err := p.Size()
	return err
}

// Size is Check, and returns the size of the file.
func (p *Place) Size() (int64, error) {
	now, err := stateOf(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, fmt.Errorf("%s %w: nothing is there: move back what was moved away, or restart the server with the right folder", p.path, ErrMoved)
	case err != nil:
		return 0, err
	case !now.is(p.was):
		return 0, fmt.Errorf("%s %w: something else is there, by a move, a copy or a mount: put back what was there, or restart the server with the right folder",
			p.path, ErrMoved)
	}
	return now.size(), nil
}

// Close releases what Hold opened. It does nothing after Of.
func (p *Place) Close() error {
	if p.borrowed {
		return nil
	}
	return p.file.Close()
}
