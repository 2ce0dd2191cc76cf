//go:build unix && !linux

package cluster

import "syscall"

// processAttributes put a child in a process group of its own.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
