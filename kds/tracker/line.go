package tracker

import (
	"context"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// accept deletes what was held when waiting was read.
func (n *Line) accept(ctx context.Context, s store.Store, waiting held) (int, error) {
	if len(waiting.keys) == 0 {
		return 0, nil
	}
	var b store.Batch
	snapshot := s.Snapshot()
	for key, revision := range waiting.keys {
		if r := snapshot.Get(key); r != nil && r.Revision == revision {
			b.Ops = append(b.Ops, store.Op{Delete: key, If: store.IfRevision(revision)})
		}
	}
	if len(b.Ops) > 0 {
		if _, err := s.Apply(ctx, b); err != nil {
			return 0, err
		}
	}
	for key := range waiting.keys {
		n.Release(key)
	}
	return len(b.Ops), nil
}

// Line is the state of one type in one direction. Safe for concurrent use.
type Line struct {
	pulse *Pulse
	mu    sync.Mutex
	// sending is set if this side sends.
	sending bool // guarded by mu
	// acknowledged is the sender's revision up to which the receiver has answered. revision is the newest one that
	// concerned the type.
	revision, acknowledged uint64 // guarded by mu
	// behind is the time since which the receiver lacks something, as far as this side knows; zero if it lacks nothing.
	behind         time.Time // guarded by mu
	messages, acks uint64    // guarded by mu
	held           held      // guarded by mu
	// mute is set if the peer sends and its messages have no revisions.
	mute bool // guarded by mu
}

// held are deletions that wait for an operator.
type held struct {
	since time.Time
	keys  map[resources.Key]uint64 // with the revision of the copy
}

// Sent records a message that goes up to revision.
func (n *Line) Sent(revision uint64, now time.Time) {
	defer n.pulse.Beat()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.messages++
	n.revision = max(n.revision, revision)
	if n.behind.IsZero() {
		n.behind = now
	}
}

// Answered records the answer to a message; behind is the time since which more waits for the peer, zero if nothing
// does.
func (n *Line) Answered(revision uint64, behind time.Time) {
	defer n.pulse.Beat()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acks++
	n.acknowledged, n.behind = max(n.acknowledged, revision), behind
}

// Newest returns the sender's newest known revision that concerned the type.
func (n *Line) Newest() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.revision
}

// UpToDate records that the peer lacks nothing up to revision, without a message.
func (n *Line) UpToDate(revision uint64) {
	defer n.pulse.Beat()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acknowledged, n.behind = max(n.acknowledged, revision), time.Time{}
}

// Waits records that a message of the peer, up to revision, waits for a store that cannot write; a zero time ends that
// without the message, with the session.
func (n *Line) Waits(revision uint64, since time.Time) {
	defer n.pulse.Beat()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.revision, n.behind = max(n.revision, revision), since
}

// Waiting returns since when messages of the peer wait for the store; zero if none does, or this side sends.
func (n *Line) Waiting() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sending {
		return time.Time{}
	}
	return n.behind
}

// late returns since when the peer lacks something that this side sends; zero if it lacks nothing, or sends.
func (n *Line) late() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.sending {
		return time.Time{}
	}
	return n.behind
}

// Applied records a message of the peer; mute is set if it has no revision.
func (n *Line) Applied(revision uint64, mute bool) {
	defer n.pulse.Beat()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.messages++
	n.acks++
	n.revision, n.acknowledged, n.mute, n.behind = revision, revision, mute, time.Time{}
}

// Hold replaces the held deletions by those of a new list.
func (n *Line) Hold(keys map[resources.Key]uint64, now time.Time) {
	defer n.pulse.Beat()
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

// Release removes a copy that came back or is gone from the held deletions.
func (n *Line) Release(key resources.Key) {
	defer n.pulse.Beat()
	n.mu.Lock()
	defer n.mu.Unlock()
	if delete(n.held.keys, key); len(n.held.keys) == 0 {
		n.held = held{}
	}
}

// Holds reports whether the deletion of a copy is held, and since when deletions are.
func (n *Line) Holds(key resources.Key) (since time.Time, held bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, held = n.held.keys[key]
	return n.held.since, held
}

// holds returns a copy of the held deletions.
func (n *Line) holds() held {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := held{since: n.held.since, keys: make(map[resources.Key]uint64, len(n.held.keys))}
	for k, r := range n.held.keys {
		out.keys[k] = r
	}
	return out
}

// forgetGone releases copies that are gone or changed: an operator has accepted their deletion, perhaps on another
// replica.
func (n *Line) forgetGone(s store.Snapshot) {
	for key, revision := range n.holds().keys {
		if r := s.Get(key); r == nil || r.Revision != revision {
			n.Release(key)
		}
	}
}

// Reached reports whether the peer has acknowledged everything up to revision.
func (n *Line) Reached(revision uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.acknowledged >= revision
}
