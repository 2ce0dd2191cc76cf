//go:build !unix

package secrets

import "io/fs"

// grantedByRoot knows no root here.
func grantedByRoot(fs.FileInfo) bool { return false }
