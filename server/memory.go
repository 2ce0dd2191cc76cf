package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// How much garbage may accumulate before it is collected: a percentage of the memory in use, plus a fixed room in
// bytes. With a percentage alone, a server that uses little collects every few requests:
// docs/decisions/0048-how-garbage-is-collected.md.
const (
	// gcPercent trades some processor time for memory: garbage is collected at half of the memory in use, not at as
	// much again.
	gcPercent, gcRoom = 50, 48 << 20
	// eagerPercent and eagerRoom are for periods that create much garbage, such as when all zones connect at once: the
	// process gives back slowly what it grows to then. The percentage is what a storm of thousands of zones costs: each
	// collection marks all that is held of them, and at 5 % most of the processor time went there.
	eagerPercent, eagerRoom = 20, 5 << 20
	// strangersRoom bounds all garbage while strangers cause much of it, or strangersPercent of the memory in use where
	// that is more: a server that holds much would otherwise mark all of it again for each few connections.
	strangersRoom, strangersPercent = 24 << 20, 20
)

const (
	// leastHeld is the least amount assumed to be in use. A percentage of less would be far too much of what is in use
	// at the next collection.
	leastHeld = 12 << 20
	// notWorth is the fraction by which GOGC may be off, because setting it stops the process for a moment.
	notWorth = 16
)

// collector controls garbage collection through GOGC, which it sets again after each collection. There is one for the
// process, as there is one garbage collector.
var collector struct {
	sync.Mutex
	saving, byPercent, byRoom int  // requests: to save memory, and two kinds of eager ones
	percent                   int  // the GOGC that was set; 0 if none was
	watched                   bool // afterCollection will be called
}

// SaveMemory sets how eagerly a server collects garbage, unless its environment does (GOGC, GOMEMLIMIT). A main calls
// it before it serves, and calls release when the server has ended.
func SaveMemory() (release func()) {
	collect(&collector.saving, true)
	return func() { collect(&collector.saving, false) }
}

// CollectEagerly makes the process collect garbage sooner, for some processor time, until each call with true has been
// followed by one with false. It does nothing if the environment decides (GOGC, GOMEMLIMIT). It may wait for a
// collection in progress.
func CollectEagerly(on bool) { collect(&collector.byPercent, on) }

// collectForStrangers collects eagerly, within strangersRoom.
func collectForStrangers(on bool) { collect(&collector.byRoom, on) }

func collect(who *int, on bool) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	collector.Lock()
	defer collector.Unlock()
	if on {
		*who++
	} else {
		*who--
	}
	steer()
}

// steer sets GOGC from the memory in use, and again after each collection while anyone requests it. collector is
// locked.
func steer() {
	percent := percentOf(held())
	if off := percent - collector.percent; max(off, -off) > collector.percent/notWorth {
		collector.percent = percent
		debug.SetGCPercent(percent)
	}
	if !collector.watched && wanted() {
		collector.watched = true
		watch(new(sentinel))
	}
}

// wanted reports whether anyone requests collections other than by gcPercent. collector is locked.
func wanted() bool { return collector.saving+collector.byPercent+collector.byRoom > 0 }

// percentOf returns the allowed garbage as a percentage of held bytes. collector is locked.
func percentOf(held int) int {
	if !wanted() {
		return gcPercent
	}
	held = max(held, leastHeld)
	room := gcRoom + held/100*gcPercent
	if collector.byPercent > 0 {
		room = eagerRoom + held/100*eagerPercent
	}
	if collector.byRoom > 0 {
		room = min(room, max(strangersRoom, held/100*strangersPercent))
	}
	return max(room/(held/100), 1)
}

// sentinel is unreferenced, so each collection frees it. It has the size of a large object: those are swept first, and
// its sweep reports the collection. Until then, the next collection uses the percentage for the previous memory in use.
type sentinel [64 << 10]byte

func watch(s *sentinel) { runtime.SetFinalizer(s, afterCollection) }

// afterCollection steers, and arranges to be called after the next collection.
func afterCollection(s *sentinel) {
	collector.Lock()
	defer collector.Unlock()
	if collector.watched = wanted(); collector.watched {
		steer()
		watch(s)
	}
}

// held returns the bytes that the last collection found in use, plus whatever else GOGC is a share of.
func held() int {
	parts := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"}}
	metrics.Read(parts)
	sum := 0
	for _, p := range parts {
		sum += int(p.Value.Uint64())
	}
	return sum
}
