package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// gcPercent trades some processor time for memory: with what servers hold, garbage is collected when it is a half of
// it, not as much again.
const gcPercent = 50

// ballast is what counts as held besides, in bytes: with little in the store, garbage is collected when it is half of this.
const ballast = 96 << 20

// eagerGCPercent is gcPercent for a while in which much is made that will not be needed again, such as when all zones
// connect at once: what the process grows to then, it gives back slowly.
const eagerGCPercent = 5

// strangersRoom is how much garbage there may be while strangers make much of it, in bytes. It is no share of what is held: what a
// collection costs grows with that, and so would how many there are; and strangers may stay for long.
const strangersRoom = 24 << 20

// steerInterval is how often that is made a share anew, for as long as it lasts.
const steerInterval = time.Second

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

// eagerly counts who wants garbage collected eagerly: by eagerGCPercent, and within strangersRoom. There is one of it, as there is
// one garbage collector.
var eagerly struct {
	sync.Mutex
	byPercent, byRoom int
	percent           int         // what was set last; 0 when nothing was
	again             *time.Timer // set while some want it by room
}

// CollectEagerly makes the process collect garbage sooner, for some processor time, from a call with true until each such call has
// been followed by one with false. It does nothing where the environment decides (GOGC, GOMEMLIMIT). It may wait for a collection
// under way.
func CollectEagerly(on bool) { collect(&eagerly.byPercent, on) }

// collectForStrangers is CollectEagerly within strangersRoom.
func collectForStrangers(on bool) { collect(&eagerly.byRoom, on) }

func collect(wanted *int, on bool) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	eagerly.Lock()
	defer eagerly.Unlock()
	if on {
		*wanted++
	} else {
		*wanted--
	}
	steer()
}

// steer has garbage collected as is wanted, and looks again later where that depends on what is held. eagerly is locked.
func steer() {
	percent := gcPercent
	if eagerly.byPercent > 0 {
		percent = eagerGCPercent
	}
	if eagerly.byRoom > 0 {
		percent = min(percent, roomPercent())
	}
	if percent != eagerly.percent {
		eagerly.percent = percent
		debug.SetGCPercent(percent)
	}
	if eagerly.again != nil {
		eagerly.again.Stop()
		eagerly.again = nil
	}
	if eagerly.byRoom > 0 {
		eagerly.again = time.AfterFunc(steerInterval, steerAgain)
	}
}

// steerAgain is steer while there is a reason. One too many does no harm.
func steerAgain() {
	eagerly.Lock()
	defer eagerly.Unlock()
	if eagerly.again != nil {
		steer()
	}
}

// roomPercent is strangersRoom as a share of what the last collection found in use. The ballast is part of that.
func roomPercent() int {
	held := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(held)
	var sum uint64
	for _, h := range held {
		sum += h.Value.Uint64()
	}
	return int(min(max(100*strangersRoom/max(sum, 1), 1), gcPercent))
}
