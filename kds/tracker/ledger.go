package tracker

import (
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
)

// Ledger is what is remembered of the sync with one peer: how far each type has come, each way, and what is held. It
// outlives sessions, not the process. Safe for concurrent use.
type Ledger struct {
	mu        sync.Mutex
	connected bool      // guarded by mu
	since     time.Time // guarded by mu: when the session began, or the last one ended
	lines     map[LineKey]*Line
}

// LineKey names a line of a Ledger.
type LineKey struct {
	Direction exchange.Direction
	Type      resources.Type
}

// NewLedger returns a ledger of a peer that nothing is known of yet.
func NewLedger() *Ledger { return &Ledger{lines: map[LineKey]*Line{}} }

// Session notes that a session began or ended.
func (l *Ledger) Session(connected bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connected, l.since = connected, now
}

// SessionSince is when the session began, or the last one ended.
func (l *Ledger) SessionSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

// Away tells since when there is no session, and whether that is so.
func (l *Ledger) Away() (since time.Time, away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since, !l.connected
}

// Forget notes that the peer's store is another one: the revisions of the one before say nothing about it. What is held stays held.
func (l *Ledger) Forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.lines {
		n.mu.Lock()
		n.revision, n.acknowledged = 0, 0
		if n.sending {
			n.behind = now
		}
		n.mu.Unlock()
	}
}

// Line returns the line of a type in a direction, from now on there; sending says which end of it this side is.
func (l *Ledger) Line(d exchange.Direction, t resources.Type, sending bool) *Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := LineKey{d, t}
	if l.lines[key] == nil {
		l.lines[key] = &Line{sending: sending}
	}
	return l.lines[key]
}

// Applied is, by type, the peer's revision that is here.
func (l *Ledger) Applied() map[resources.Type]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[resources.Type]uint64{}
	for key, n := range l.lines {
		n.mu.Lock()
		if !n.sending {
			out[key.Type] = n.acknowledged
		}
		n.mu.Unlock()
	}
	return out
}

// Absent returns the other side while it is not connected, and nil while it is.
func (l *Ledger) Absent(name string, started time.Time) *RolloutOffline {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.connected {
		return nil
	}
	out := absent(name, l.since, started)
	return &out
}

// HeldCounts is how many removals are held, by type; nil for none.
func (l *Ledger) HeldCounts(d exchange.Direction) map[resources.Type]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out map[resources.Type]int
	for key, n := range l.lines {
		n.mu.Lock()
		if held := len(n.held.keys); held > 0 && key.Direction == d {
			if out == nil {
				out = map[resources.Type]int{}
			}
			out[key.Type] = held
		}
		n.mu.Unlock()
	}
	return out
}

// Holding reports whether removals of any type are held in a direction.
func (l *Ledger) Holding(d exchange.Direction) bool {
	return len(l.HeldCounts(d)) > 0
}
