//go:build !settableclock

package settings

import "time"

// Clock returns the wall clock of the program: the machine's. Programs that tests build with the tag settableclock have
// one that can be set.
func Clock() func() time.Time { return time.Now }
