package kds

import (
	"sync"
	"time"
)

// syncSlots limits how many streams are sent their full state at once, in order of arrival: after a restart all zones
// connect at the same moment. A nil *syncSlots has no limit. Safe for concurrent use.
type syncSlots struct {
	mu      sync.Mutex
	limit   int
	free    int             // guarded by mu
	waiting []chan struct{} // guarded by mu; in order of arrival
	large   int             // guarded by mu: the slots in which a stream has sent much
	// busy is called when the first stream sends much and when the slots of all that did are free.
	busy func(bool)
}

// largeList is the size, in bytes, from which a message counts as much. Zones that come back get only what has changed.
const largeList = 16 << 10

func newSyncSlots(limit int, busy func(bool)) *syncSlots {
	if limit <= 0 {
		return nil
	}
	if busy == nil {
		busy = func(bool) {}
	}
	return &syncSlots{limit: limit, free: limit, busy: busy}
}

// acquire returns a channel that is closed once the caller has a slot. The caller must call release in any case.
func (t *syncSlots) acquire() chan struct{} {
	ready := make(chan struct{})
	if t == nil {
		close(ready)
		return ready
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		close(ready)
	} else {
		t.waiting = append(t.waiting, ready)
	}
	return ready
}

// sendsMuch notes that the stream with a slot sends much. The stream says so once, and when it releases the slot.
func (t *syncSlots) sendsMuch() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.large++; t.large == 1 {
		t.busy(true)
	}
}

// release gives the slot to the next stream, or removes the caller from the queue. With much, it has called sendsMuch.
func (t *syncSlots) release(ready chan struct{}, much bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if much {
		if t.large--; t.large == 0 {
			t.busy(false)
		}
	}
	for i, w := range t.waiting {
		if w == ready {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			return
		}
	}
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	close(t.waiting[0])
	t.waiting = t.waiting[1:]
}

// syncSlot is one stream's place in the queue. It belongs to the stream's goroutine.
type syncSlot struct {
	slots *syncSlots
	// most is the longest time of a slot: a peer that answers slowly must not delay the others. It then queues again
	// for the rest.
	most time.Duration

	ready chan struct{} // nil while the stream needs no slot
	got   bool
	much  bool // sendsMuch was called
	over  *time.Timer
}

// acquired requests the slot and reports whether the stream has it.
func (t *syncSlot) acquired() bool {
	if t.ready == nil {
		t.ready = t.slots.acquire()
	}
	if t.got {
		return true
	}
	select {
	case <-t.ready:
		t.got, t.over = true, time.NewTimer(t.most)
	default:
	}
	return t.got
}

// granted returns a channel that is closed when the slot is free; nil if the stream waits for none.
func (t *syncSlot) granted() <-chan struct{} {
	if t.got {
		return nil
	}
	return t.ready
}

// expired returns a channel that signals when the slot has lasted too long; nil if the stream has none.
func (t *syncSlot) expired() <-chan time.Time {
	if !t.got {
		return nil
	}
	return t.over.C
}

// sends notes the size of a message, in bytes, that is sent in the slot.
func (t *syncSlot) sends(size int) {
	if t.got && !t.much && size >= largeList {
		t.much = true
		t.slots.sendsMuch()
	}
}

// release gives up the slot, or the wait for it.
func (t *syncSlot) release() {
	if t.ready == nil {
		return
	}
	if t.got {
		t.over.Stop()
	}
	t.slots.release(t.ready, t.much)
	t.ready, t.got, t.much, t.over = nil, false, false, nil
}
