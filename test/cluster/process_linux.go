package cluster

import "syscall"

// processAttributes puts a child in its own process group, and ends it when this program dies, for whatever reason.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
