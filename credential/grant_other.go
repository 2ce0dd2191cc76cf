//go:build !unix

package credential

import "io/fs"

// grantedByRoot knows no root here.
func grantedByRoot(fs.FileInfo) bool { return false }

// withoutWaiting is not known here.
const withoutWaiting = 0
