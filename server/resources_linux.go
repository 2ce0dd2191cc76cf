package server

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

func diskRoom(dir string) (room, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return room{}, err
	}
	size := uint64(s.Bsize) //nolint:gosec // the size of a block is positive
	return room{free: s.Bavail * size, size: s.Blocks * size, freeFiles: s.Ffree, files: s.Files}, nil
}

// descriptors counts the open descriptors, except the one for counting. Errors: errors.ErrUnsupported if the system
// does not report them, and those of the operating system.
func descriptors() (open, limit uint64, err error) {
	folder, err := os.Open("/proc/self/fd")
	if errors.Is(err, fs.ErrNotExist) { // a root folder without /proc, such as a minimal service's
		return 0, 0, errors.ErrUnsupported
	}
	if err != nil {
		return 0, 0, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return 0, 0, err
	}
	var bound syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &bound); err != nil {
		return 0, 0, err
	}
	return uint64(max(len(names)-1, 0)), bound.Cur, nil
}
