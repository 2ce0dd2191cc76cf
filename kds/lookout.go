package kds

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// lookTurns is the number of parts in which a lookout looks at its connections.
const lookTurns = 10

// lookout watches all connections of a server. A timer for each connection would wake the process for each: it looks at
// a tenth of them at a time. Without connections it has no timer. Safe for concurrent use.
type lookout struct {
	// interval is the time between two looks at a connection.
	interval time.Duration

	mu    sync.Mutex
	turns [lookTurns]map[*transport]struct{} // guarded by mu
	turn  int                                // guarded by mu: the last that it looked at
	count int                                // guarded by mu: of connections
	armed bool                               // guarded by mu: look is going to be called
	due   []*transport                       // used by look only
}

// watch does the same as transport.watch.
func (l *lookout) watch(t *transport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beginLocked()
	t.lookout = l
	l.mu.Lock()
	defer l.mu.Unlock()
	t.turn = l.turn // the one that is furthest away
	if l.turns[t.turn] == nil {
		l.turns[t.turn] = map[*transport]struct{}{}
	}
	l.turns[t.turn][t] = struct{}{}
	l.count++
	l.armLocked()
}

// armLocked arranges the next look, unless there is nothing to look at. The caller holds l.mu.
func (l *lookout) armLocked() {
	if !l.armed && l.count > 0 {
		l.armed = true
		time.AfterFunc(l.interval/lookTurns, l.look)
	}
}

// leave ends watch.
func (l *lookout) leave(t *transport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.turns[t.turn], t)
	l.count--
}

// look looks at the connections of the next turn.
func (l *lookout) look() {
	l.mu.Lock()
	l.turn = (l.turn + 1) % lookTurns
	l.due = slices.AppendSeq(l.due[:0], maps.Keys(l.turns[l.turn]))
	l.mu.Unlock()
	for _, t := range l.due {
		if t.glance(l.interval) {
			go func() {
				t.rest()
				t.hangUp()
			}()
		}
	}
	clear(l.due)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	l.armLocked()
}
