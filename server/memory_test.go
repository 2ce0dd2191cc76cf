package server

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
)

// TestStrangersGarbageHasRoom checks that garbage of strangers stays small, by a limit that is no share of the heap: a
// large process does not collect every few requests. It once did, every 5 % of 100 MiB.
func TestStrangersGarbageHasRoom(t *testing.T) {
	decides(t)
	held := hold(100)
	runtime.GC()
	collectForStrangers(true)
	defer collectForStrangers(false)
	collections := collected()
	const times = 20
	if usual := makeGarbage(times * strangersRoom); usual > 3*strangersRoom {
		t.Errorf("there were %d MiB of garbage, want about %d", usual>>20, strangersRoom>>20)
	}
	if n := collected() - collections; n > 2*times {
		t.Errorf("%d collections for %d times the room", n, times)
	}
	runtime.KeepAlive(held)
}

// TestEagerCollectionsFollowWhatIsHeld checks that a server that holds much does not mark all of it for each few of the
// zones that connect at once, or of strangers.
func TestEagerCollectionsFollowWhatIsHeld(t *testing.T) {
	decides(t)
	const mebibytes, times = 300, 8
	held := hold(mebibytes)
	for name, eagerly := range map[string]func(bool){"full states": CollectEagerly, "strangers": collectForStrangers} {
		runtime.GC()
		eagerly(true)
		collections := collected()
		makeGarbage(times * mebibytes << 20 * eagerPercent / 100)
		if n := collected() - collections; n > times*3/2 {
			t.Errorf("%s: %d collections for %d times a fifth of what is held", name, n, times)
		}
		eagerly(false)
	}
	runtime.KeepAlive(held)
}

// TestLittleIsHeldAndSeldomCollected checks that a server with a small heap does not collect every few requests. One
// with an empty store holds about leastHeld.
func TestLittleIsHeldAndSeldomCollected(t *testing.T) {
	decides(t)
	defer SaveMemory()()
	held := hold(leastHeld >> 20)
	defer runtime.KeepAlive(held)
	runtime.GC()
	collections := collected()
	const times = 20
	makeGarbage(times * gcRoom)
	if n := collected() - collections; n > 2*times {
		t.Errorf("%d collections for %d times the room", n, times)
	}
}

// TestGarbageStaysAShareOfWhatIsHeld checks that the share for a small heap does not apply to a large one: a server
// that loads a large store, or whose zones all connect at once, would grow to a multiple of it.
func TestGarbageStaysAShareOfWhatIsHeld(t *testing.T) {
	decides(t)
	defer SaveMemory()()
	runtime.GC()
	const mebibytes = 400
	held := hold(mebibytes)
	const want = gcRoom + mebibytes<<20*gcPercent/100
	if usual := makeGarbage(6 * want); usual > 2*want {
		t.Errorf("there were %d MiB of garbage, want at most about %d", usual>>20, want>>20)
	}
	runtime.KeepAlive(held)
}

// makeGarbage returns the median growth of the heap while it allocates size bytes, or what the heap may grow by until the
// next collection, if that is less: where other processes delay a collection, the heap outgrows it.
func makeGarbage(size int) (usual uint64) {
	runtime.GC()
	base := inHeap()
	var grown []uint64
	for range size / (64 << 10) {
		garbage = make([]byte, 64<<10)
		now, live, goal := inHeap(), metric("/gc/heap/live:bytes"), metric("/gc/heap/goal:bytes")
		grown = append(grown, min(now-min(base, now), goal-min(live, goal)))
	}
	slices.Sort(grown)
	return grown[len(grown)/2]
}

// decides lets servers decide how they collect garbage, whatever the environment of the tests says.
func decides(t *testing.T) {
	t.Helper()
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
}

func hold(mebibytes int) (held [][]byte) {
	for range mebibytes {
		held = append(held, make([]byte, 1<<20))
	}
	return held
}

var garbage []byte

func collected() uint64 { return metric("/gc/cycles/total:gc-cycles") }

func inHeap() uint64 { return metric("/memory/classes/heap/objects:bytes") }

func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
