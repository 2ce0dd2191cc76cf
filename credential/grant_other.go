//go:build !unix

package credential

import "io/fs"

// grantedByRoot returns false: there is no root on this platform.
func grantedByRoot(fs.FileInfo) bool { return false }

// withoutWaiting has no effect on this platform.
const withoutWaiting = 0
