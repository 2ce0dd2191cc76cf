//go:build !unix

package credential

import "io/fs"

// grantedByRoot returns false: there is no root on this platform.
func grantedByRoot(fs.FileInfo) bool { return false }

// withoutWaiting has no effect on this platform.
const withoutWaiting = 0

// modesTell is false: Go makes up the modes of this platform, which has access lists instead. They show every file as one
// that everybody may write.
const modesTell = false
