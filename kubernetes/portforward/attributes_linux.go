package portforward

import "syscall"

// attributes end kubectl together with this program, however it ends. An interrupt of the terminal reaches this program
// only, which ends kubectl once it needs it no longer.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
