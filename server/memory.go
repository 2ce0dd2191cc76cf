package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
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
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	debug.SetGCPercent(gcPercent)
	held := make([]byte, ballast)
	return func() { runtime.KeepAlive(held) }
}

// eagerly counts who wants garbage collected eagerly. There is one of it, as there is one garbage collector.
var eagerly struct {
	sync.Mutex
	wanted int
}

// CollectEagerly makes the process collect garbage sooner, for some processor time, from a call with true until each such call has
// been followed by one with false. It does nothing where the environment decides (GOGC, GOMEMLIMIT). It may wait for a collection
// under way.
func CollectEagerly(on bool) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	eagerly.Lock()
	defer eagerly.Unlock()
	if on {
		eagerly.wanted++
	} else {
		eagerly.wanted--
	}
	switch {
	case eagerly.wanted == 1 && on:
		debug.SetGCPercent(eagerGCPercent)
	case eagerly.wanted == 0:
		debug.SetGCPercent(gcPercent)
	}
}
