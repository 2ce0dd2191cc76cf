package place

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// state is what tells a file or folder from others, and a file from what it was. On Linux it is read without what else an
// fs.FileInfo has: a server that writes looks at a dozen paths each time.
type state struct {
	device, inode uint64
	bytes         int64
	modified      syscall.Timespec
}

// stateOf returns what a path leads to. Errors are the operating system's.
func stateOf(path string) (state, error) {
	var s syscall.Stat_t
	for {
		err := syscall.Stat(path, &s)
		if err == nil {
			return stateFrom(&s), nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return state{}, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
	}
}

// stateIn returns that of an open file.
func stateIn(f *os.File) (state, error) {
	info, err := f.Stat()
	if err != nil {
		return state{}, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return state{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: errors.ErrUnsupported}
	}
	return stateFrom(s), nil
}

func stateFrom(s *syscall.Stat_t) state {
	return state{uint64(s.Dev), s.Ino, s.Size, s.Mtim} //nolint:unconvert // a device has fewer bits on some machines
}

// is reports whether both are one file or folder.
func (s state) is(o state) bool { return s.device == o.device && s.inode == o.inode }

// unchanged reports whether a file is o, as it was when o was read.
func (s state) unchanged(o state) bool { return s == o }

func (s state) size() int64 { return s.bytes }
