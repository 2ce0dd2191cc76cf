package bolt

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// readAhead reads the file once from front to back, so that the scattered reads of loading come from memory. With a
// cold cache that takes a twentieth of the time. It passes over holes: a file of 60 kB is 16 MiB long from its first
// write on.
func readAhead(path string) error {
	f, err := os.Open(path) //nolint:gosec // the path is the operator's choice
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return damaged(path, "the file is empty")
	}
	buffer := make([]byte, 1<<20)
	for to := int64(0); ; {
		from := to
		if from, to, err = extent(f, from, info.Size()); err != nil || from == to {
			return err
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.NewSectionReader(f, from, to-from), buffer); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}

// damaged returns the error for a file that cannot be used in its present state.
func damaged(path, format string, args ...any) error {
	return fmt.Errorf(
		"%s: %w: %w: restore it from a backup, or move it away, with the folder audit, to start with an empty store",
		path, fmt.Errorf(format, args...), ErrDamaged)
}

// openBolt opens the file in bbolt. It also returns the file that bbolt has open and closes.
func openBolt(path string, lockTimeout time.Duration) (db *bbolt.DB, opened *os.File, err error) {
	defer func() {
		if db == nil && opened != nil {
			_ = opened.Close() // Releases the lock; bbolt did so itself unless it panicked.
		}
	}()
	defer recoverDamage(path, &err)()
	db, err = bbolt.Open(path, fileMode, &bbolt.Options{
		Timeout:         lockTimeout,
		InitialMmapSize: initialMmapSize,
		FreelistType:    bbolt.FreelistMapType,
		NoStatistics:    true,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			f, err := os.OpenFile(name, flag, mode)
			opened = f
			return f, err
		},
	})
	var refused syscall.Errno
	switch {
	case err == nil:
		return db, opened, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, fmt.Errorf("another process has %s open (%s is locked): %w", filepath.Dir(path), path, ErrInUse)
	case errors.As(err, &refused):
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	// The error is not the operating system's: bbolt rejects the contents.
	return nil, nil, damaged(path, "not a store's file: %w", err)
}

// recoverDamage, deferred as `defer recoverDamage(...)()`, turns the crashes of bbolt on a damaged file into an error:
// bbolt panics on invalid pages and faults on pages that a truncated file has lost. It works for this goroutine only.
func recoverDamage(path string, err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			*err = damaged(path, "cannot be read: %v", p)
		}
	}
}
