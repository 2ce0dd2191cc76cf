//go:build !linux

package place

import (
	"io/fs"
	"os"
)

// state is what tells a file or folder from others, and a file from what it was.
type state struct{ info fs.FileInfo }

// stateOf returns what a path leads to. Errors are the operating system's.
func stateOf(path string) (state, error) {
	info, err := os.Stat(path)
	return state{info}, err
}

// stateIn returns that of an open file.
func stateIn(f *os.File) (state, error) {
	info, err := f.Stat()
	return state{info}, err
}

// is reports whether both are one file or folder.
func (s state) is(o state) bool { return os.SameFile(s.info, o.info) }

// unchanged reports whether a file is o, as it was when o was read.
func (s state) unchanged(o state) bool {
	return s.is(o) && s.info.ModTime().Equal(o.info.ModTime()) && s.size() == o.size()
}

func (s state) size() int64 { return s.info.Size() }
