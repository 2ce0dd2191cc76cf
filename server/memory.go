package server

import (
	"os"
	"runtime"
	"runtime/debug"
)

// gcPercent trades some processor time for memory: with what servers hold, garbage is collected when it is a half of
// it, not as much again.
const gcPercent = 50

// globalBallast, ZoneBallast: bytes for HoldBallast.
const (
	globalBallast = 32 << 20
	ZoneBallast   = 16 << 20
)

// eagerGCPercent is gcPercent for a while in which much is made that will not be needed again, such as when all zones
// connect at once: what the process grows to then, it gives back slowly.
const eagerGCPercent = 10

// SaveMemory sets how eagerly a global collects garbage, unless its environment does (GOGC, GOMEMLIMIT). It is for a
// main, before it serves, which calls what it returns when the server has ended.
func SaveMemory() (release func()) {
	CollectEagerly(false)
	return HoldBallast(globalBallast)
}

// HoldBallast makes so many bytes count as held until they are released. They take no memory, for nobody touches them;
// without, a server that holds little collects garbage every few requests. Where the environment decides (GOGC, GOMEMLIMIT)
// there are none.
func HoldBallast(bytes int) (release func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	ballast := make([]byte, bytes)
	return func() { runtime.KeepAlive(ballast) }
}

// CollectEagerly makes the process collect garbage sooner while on is true, for some processor time. It does nothing where
// the environment decides (GOGC, GOMEMLIMIT). It may wait for a collection under way.
func CollectEagerly(on bool) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if on {
		debug.SetGCPercent(eagerGCPercent)
	} else {
		debug.SetGCPercent(gcPercent)
	}
}
