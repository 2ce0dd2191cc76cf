package kds

import (
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// ledger is what is remembered of the sync with one peer: how far each type has come, each way, and what is held. It
// outlives sessions, not the process. Safe for concurrent use.
type ledger struct {
	mu        sync.Mutex
	connected bool      // guarded by mu
	since     time.Time // guarded by mu: when the session began, or the last one ended
	lines     map[lineKey]*line
}

type lineKey struct {
	direction exchange.Direction
	typ       resources.Type
}

// line is one type in one direction.
type line struct {
	mu sync.Mutex
	// sending: this side is the one that sends.
	sending bool // guarded by mu
	// acknowledged is the revision of the sender up to which the receiver has answered. revision is the newest that concerned
	// the type.
	revision, acknowledged uint64 // guarded by mu
	// behind is since when the peer misses something; zero when it misses nothing.
	behind         time.Time // guarded by mu
	messages, acks uint64    // guarded by mu
	held           held      // guarded by mu
	// mute: the peer sends and does not say its revisions.
	mute bool // guarded by mu
}

// held are removals that wait for an operator.
type held struct {
	since time.Time
	keys  map[resources.Key]uint64 // with the revision of the copy
}

func newLedger() *ledger { return &ledger{lines: map[lineKey]*line{}} }

// session notes that a session began or ended.
func (l *ledger) session(connected bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connected, l.since = connected, now
}

// sessionSince is when the session began, or the last one ended.
func (l *ledger) sessionSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

// forget notes that the peer's store is another one: the revisions of the one before say nothing about it. What is held stays held.
func (l *ledger) forget(now time.Time) {
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

func (l *ledger) line(d exchange.Direction, t resources.Type, sending bool) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := lineKey{d, t}
	if l.lines[key] == nil {
		l.lines[key] = &line{sending: sending}
	}
	return l.lines[key]
}

// sent notes a message that goes up to revision.
func (n *line) sent(revision uint64, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.messages++
	n.revision = max(n.revision, revision)
	if n.behind.IsZero() {
		n.behind = now
	}
}

// answered notes the answer to a message; behind is since when there is more to say, zero when there is not.
func (n *line) answered(revision uint64, behind time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acks++
	n.acknowledged, n.behind = max(n.acknowledged, revision), behind
}

// upToDate notes that the peer misses nothing up to revision, without a message.
func (n *line) upToDate(revision uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acknowledged, n.behind = max(n.acknowledged, revision), time.Time{}
}

// applied notes a message of the peer, which is mute if it does not say its revisions.
func (n *line) applied(revision uint64, mute bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.messages++
	n.acks++
	n.revision, n.acknowledged, n.mute = revision, revision, mute
}

// hold replaces what is held by what a new list says; release takes out what came back or is gone.
func (n *line) hold(keys map[resources.Key]uint64, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(keys) == 0 {
		n.held = held{}
		return
	}
	if len(n.held.keys) > 0 {
		now = n.held.since
	}
	n.held = held{since: now, keys: keys}
}

func (n *line) release(key resources.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if delete(n.held.keys, key); len(n.held.keys) == 0 {
		n.held = held{}
	}
}

// holds returns a copy of what is held.
func (n *line) holds() held {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := held{since: n.held.since, keys: make(map[resources.Key]uint64, len(n.held.keys))}
	for k, r := range n.held.keys {
		out.keys[k] = r
	}
	return out
}

// forgetGone lets go of what is held of copies that are gone or changed: an operator accepted it, perhaps asking another replica.
func (n *line) forgetGone(s store.Snapshot) {
	for key, revision := range n.holds().keys {
		if r := s.Get(key); r == nil || r.Revision != revision {
			n.release(key)
		}
	}
}
