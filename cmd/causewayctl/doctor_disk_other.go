//go:build !linux && !darwin

package main

import "errors"

// diskSpace always fails, because the disk space is not available on this system.
func diskSpace(string) (free, total uint64, err error) {
	return 0, 0, errors.New("the free disk space is unknown on this system")
}
