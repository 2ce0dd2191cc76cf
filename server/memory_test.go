package server

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// TestStrangersGarbageHasRoom: while strangers make garbage there is little of it at a time, and that is no share of what the
// process holds: a large one does not collect every few requests. It did, every 5 % of 100 MiB.
func TestStrangersGarbageHasRoom(t *testing.T) {
	before := debug.SetGCPercent(gcPercent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	held := make([][]byte, 100)
	for i := range held {
		held[i] = make([]byte, 1<<20)
	}
	runtime.GC()
	collectForStrangers(true)
	defer collectForStrangers(false)
	const made = 20 * strangersRoom
	collections, most := collected(), uint64(0)
	base := inHeap()
	for range made / (64 << 10) {
		garbage = make([]byte, 64<<10)
		most = max(most, inHeap()-min(base, inHeap()))
	}
	if n := collected() - collections; n < 10 || n > 40 {
		t.Errorf("%d collections for %d times the room", n, made/strangersRoom)
	}
	if most > 3*strangersRoom {
		t.Errorf("garbage grew to %d MiB, want about %d", most>>20, strangersRoom>>20)
	}
	runtime.KeepAlive(held)
}

var garbage []byte

func collected() uint64 { return metric("/gc/cycles/total:gc-cycles") }

func inHeap() uint64 { return metric("/memory/classes/heap/objects:bytes") }

func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
