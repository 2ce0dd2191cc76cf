package tracker

import (
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
)

// Ledger holds the state of the sync with one peer: the progress of each type in each direction, and what is held. It
// outlives sessions, not the process. Safe for concurrent use.
type Ledger struct {
	now        func() time.Time
	mu         sync.Mutex
	connected  bool      // guarded by mu
	since      time.Time // guarded by mu: when the session began, or the last one ended
	unheard    bool      // guarded by mu: nothing is known of it since then
	whyUnheard string    // guarded by mu
	lines      map[LineKey]*Line
	pulse      *Pulse
}

// LineKey is the key of a line of a Ledger.
type LineKey struct {
	Direction exchange.Direction
	Type      resources.Type
}

// NewLedger returns an empty ledger; now is its clock, and pulse beats with its changes.
func NewLedger(now func() time.Time, pulse *Pulse) *Ledger {
	return &Ledger{now: now, lines: map[LineKey]*Line{}, pulse: pulse}
}

// Session records that a session began or ended.
func (l *Ledger) Session(connected bool, now time.Time) {
	defer l.pulse.Beat()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connected, l.since, l.unheard = connected, now, false
}

// Doubt records that this server no longer hears of the peer, whose session another replica had, and why.
func (l *Ledger) Doubt(now time.Time, why string) {
	defer l.pulse.Beat()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.unheard {
		l.connected, l.since, l.unheard = false, now, true
	}
	l.whyUnheard = why
}

// Unheard reports whether it is unknown if the peer is connected.
func (l *Ledger) Unheard() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unheard
}

// WhyUnheard returns why it is unknown if the peer is connected; empty if it is known.
func (l *Ledger) WhyUnheard() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.unheard {
		return ""
	}
	return l.whyUnheard
}

// SessionSince returns the time when the session began, or the last one ended.
func (l *Ledger) SessionSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

// Away returns the time since which there is no session, and whether there is none.
func (l *Ledger) Away() (since time.Time, away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since, !l.connected
}

// Forget records that the peer has another store: revisions of the previous one do not count for it. What is held stays
// held.
func (l *Ledger) Forget(now time.Time) {
	defer l.pulse.Beat()
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

// Line returns the line of a type in a direction, and creates it if there is none; sending is set on the sending side.
func (l *Ledger) Line(d exchange.Direction, t resources.Type, sending bool) *Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := LineKey{d, t}
	if l.lines[key] == nil {
		l.lines[key] = &Line{sending: sending, pulse: l.pulse}
	}
	return l.lines[key]
}

// Applied returns the peer's revision that has been applied here, by type.
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

// Absent returns the peer as offline while it is not connected, and nil while it is.
func (l *Ledger) Absent(name string, started time.Time) *RolloutOffline {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.connected {
		return nil
	}
	out := absent(name, l.since, started)
	out.Unheard = l.unheard
	return &out
}

// Waiting returns since when messages of the peer in a direction wait for the store; zero if none does.
func (l *Ledger) Waiting(d exchange.Direction) (since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, n := range l.lines {
		if at := n.Waiting(); key.Direction == d && !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	return since
}

// Late returns since when the peer lacks something of one of the types that this side sends in a direction; zero if it
// lacks nothing.
func (l *Ledger) Late(d exchange.Direction, types ...resources.Type) (since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range types {
		n := l.lines[LineKey{d, t}]
		if n == nil {
			continue
		}
		if at := n.late(); !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	return since
}

// HeldCounts returns the number of held deletions by type; nil if there are none.
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

// Holding reports whether deletions of any type are held in a direction.
func (l *Ledger) Holding(d exchange.Direction) bool {
	return len(l.HeldCounts(d)) > 0
}
