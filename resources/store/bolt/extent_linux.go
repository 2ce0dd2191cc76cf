package bolt

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// extent returns where the next data from an offset on begins and ends; twice the same offset if there is none.
func extent(f *os.File, from, size int64) (int64, int64, error) {
	begins, err := f.Seek(from, unix.SEEK_DATA)
	switch {
	case errors.Is(err, syscall.ENXIO): // only a hole is left
		return size, size, nil
	case err != nil: // a file system that knows no holes
		return from, size, nil
	case begins >= size: // another process has made the file longer since
		return size, size, nil
	}
	ends, err := f.Seek(begins, unix.SEEK_HOLE)
	if err != nil {
		return begins, size, nil
	}
	return begins, min(ends, size), nil
}
