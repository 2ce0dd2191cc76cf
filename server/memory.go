package server

import (
	"os"
	"runtime"
	"runtime/debug"
)

// gcPercent trades some processor time for memory: with what servers hold, garbage is collected when it is a half of
// it, not as much again.
const gcPercent = 50

// ballast is what counts as held besides, in bytes: with little in the store, garbage is collected when it is half of this.
const ballast = 96 << 20

// eagerGCPercent is gcPercent for a while in which much is made that will not be needed again, such as when all zones
// connect at once: what the process grows to then, it gives back slowly.
const eagerGCPercent = 5

// SaveMemory sets how eagerly a server collects garbage, unless its environment does (GOGC, GOMEMLIMIT). It is for a
// main, before it serves, which calls what it returns when the server has ended.
//
// The ballast takes no memory, for nobody touches it; without, a server that holds little collects garbage every few requests.
func SaveMemory() (release func()) {
	CollectEagerly(false)
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	held := make([]byte, ballast)
	return func() { runtime.KeepAlive(held) }
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
