//go:build !settableclock

package settings

import "time"

// Clock returns the program's wall clock: the machine's. Tests build programs with the tag settableclock, whose clock
// can be set.
func Clock() func() time.Time { return time.Now }
