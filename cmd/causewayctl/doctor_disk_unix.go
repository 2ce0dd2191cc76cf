//go:build linux || darwin

package main

import "syscall"

// diskSpace returns the disk space of a folder's file system, in bytes: free for programs without root rights, and in
// total.
func diskSpace(dir string) (free, total uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	size := uint64(s.Bsize) //nolint:gosec // the size of a block is positive
	return s.Bavail * size, s.Blocks * size, nil
}
