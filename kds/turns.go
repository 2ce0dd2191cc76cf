package kds

import (
	"sync"
	"time"
)

// turns limits how many streams are sent their full state at once, in order of arrival: after a restart all zones
// connect at the same moment. A nil *turns has no limit. Safe for concurrent use.
type turns struct {
	mu      sync.Mutex
	limit   int
	free    int             // guarded by mu
	waiting []chan struct{} // guarded by mu; in order of arrival
	// busy, if not nil, is called when the first stream takes a turn and when the last has left.
	busy func(bool)
}

func newTurns(limit int, busy func(bool)) *turns {
	if limit <= 0 {
		return nil
	}
	if busy == nil {
		busy = func(bool) {}
	}
	return &turns{limit: limit, free: limit, busy: busy}
}

// queue returns a channel that is closed once it is the caller's turn. The caller must call leave in any case.
func (t *turns) queue() chan struct{} {
	ready := make(chan struct{})
	if t == nil {
		close(ready)
		return ready
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		if t.free == t.limit {
			t.busy(true)
		}
		t.free--
		close(ready)
	} else {
		t.waiting = append(t.waiting, ready)
	}
	return ready
}

// leave gives the turn to the next stream, or removes the caller from the queue.
func (t *turns) leave(ready chan struct{}) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.waiting {
		if w == ready {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			return
		}
	}
	if len(t.waiting) == 0 {
		if t.free++; t.free == t.limit {
			t.busy(false)
		}
		return
	}
	close(t.waiting[0])
	t.waiting = t.waiting[1:]
}

// turn is one stream's place in the queue. It belongs to the stream's goroutine.
type turn struct {
	turns *turns
	// most is the longest time of a turn: a peer that answers slowly must not delay the others. It then queues again
	// for the rest.
	most time.Duration

	ready chan struct{} // nil while the stream needs no turn
	got   bool
	over  *time.Timer
}

// mine requests the turn and reports whether the stream has it.
func (t *turn) mine() bool {
	if t.ready == nil {
		t.ready = t.turns.queue()
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

// coming returns a channel that is closed when the turn comes; nil if the stream waits for none.
func (t *turn) coming() <-chan struct{} {
	if t.got {
		return nil
	}
	return t.ready
}

// overdue returns a channel that signals when the turn has lasted too long; nil if the stream has none.
func (t *turn) overdue() <-chan time.Time {
	if !t.got {
		return nil
	}
	return t.over.C
}

// end gives up the turn, or the wait for it.
func (t *turn) end() {
	if t.ready == nil {
		return
	}
	if t.got {
		t.over.Stop()
	}
	t.turns.leave(t.ready)
	t.ready, t.got, t.over = nil, false, nil
}
