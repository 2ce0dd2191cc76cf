package server

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// birthOf returns the creation time of a folder, which a move on its disk preserves and a copy does not, or "" if the
// file system does not record it.
func birthOf(path string) (string, error) {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_SYNC_AS_STAT, unix.STATX_BTIME, &stat); err != nil {
		return "", fmt.Errorf("%s: when it was made: %w", path, err)
	}
	if stat.Mask&unix.STATX_BTIME == 0 {
		return "", nil
	}
	return fmt.Sprintf("made %d.%09d", stat.Btime.Sec, stat.Btime.Nsec), nil
}
