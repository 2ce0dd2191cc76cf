//go:build unix && !linux

package cluster

import "syscall"

// processAttributes puts a child in its own process group.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
