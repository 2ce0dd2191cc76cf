//go:build unix

package credential

import (
	"io/fs"
	"os"
	"syscall"
)

// withoutWaiting keeps a pipe that nobody writes from holding up who opens it.
const withoutWaiting = syscall.O_NONBLOCK

// grantedByRoot reports whether a file is root's and this process is not: then its group, or what the mode shows of an access
// list, is how root lets the server read it. Credentials of systemd and Secrets of Kubernetes are such files.
func grantedByRoot(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0 && os.Geteuid() != 0
}
