//go:build unix

package credential

import (
	"io/fs"
	"os"
	"syscall"
)

// withoutWaiting prevents a pipe without a writer from blocking the caller that opens it.
const withoutWaiting = syscall.O_NONBLOCK

// modesTell reports whether the mode of a file says who may read and write it.
const modesTell = true

// grantedByRoot reports whether root owns the file and this process is not root. Root then lets the server read the
// file through its group or an access list that shows in the mode. Files from systemd credentials and Kubernetes
// Secrets are like this.
func grantedByRoot(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0 && os.Geteuid() != 0
}
