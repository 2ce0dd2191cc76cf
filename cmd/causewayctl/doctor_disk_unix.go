//go:build linux || darwin

package main

import "syscall"

// diskSpace is the room on the disk of a folder, in bytes: free for programs that are not root, and in all.
func diskSpace(dir string) (free, total uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	size := uint64(s.Bsize) //nolint:gosec // the size of a block is positive
	return s.Bavail * size, s.Blocks * size, nil
}
