package cluster

import "syscall"

// processAttributes put a child in a process group of its own, and end it when this program dies, however it dies.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
