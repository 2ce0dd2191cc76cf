//go:build !linux

package portforward

import "syscall"

// attributes are none: kubectl ends with Close.
func attributes() *syscall.SysProcAttr { return nil }
