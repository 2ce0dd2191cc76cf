package tracker

import (
	"context"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func (n *Line) accept(ctx context.Context, s store.Store) (int, error) {
	waiting := n.holds()
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

// Line is one type in one direction. Safe for concurrent use.
type Line struct {
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

// Sent notes a message that goes up to revision.
func (n *Line) Sent(revision uint64, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.messages++
	n.revision = max(n.revision, revision)
	if n.behind.IsZero() {
		n.behind = now
	}
}

// Answered notes the answer to a message; behind is since when there is more to say, zero when there is not.
func (n *Line) Answered(revision uint64, behind time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acks++
	n.acknowledged, n.behind = max(n.acknowledged, revision), behind
}

// Newest is the sender's newest revision that concerned the type, as far as is known.
func (n *Line) Newest() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.revision
}

// UpToDate notes that the peer misses nothing up to revision, without a message.
func (n *Line) UpToDate(revision uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acknowledged, n.behind = max(n.acknowledged, revision), time.Time{}
}

// Applied notes a message of the peer, which is mute if it does not say its revisions.
func (n *Line) Applied(revision uint64, mute bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.messages++
	n.acks++
	n.revision, n.acknowledged, n.mute = revision, revision, mute
}

// Hold replaces what is held by what a new list says.
func (n *Line) Hold(keys map[resources.Key]uint64, now time.Time) {
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

// Release takes a copy that came back or is gone out of what is held.
func (n *Line) Release(key resources.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if delete(n.held.keys, key); len(n.held.keys) == 0 {
		n.held = held{}
	}
}

// holds returns a copy of what is held.
func (n *Line) holds() held {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := held{since: n.held.since, keys: make(map[resources.Key]uint64, len(n.held.keys))}
	for k, r := range n.held.keys {
		out.keys[k] = r
	}
	return out
}

// forgetGone lets go of what is held of copies that are gone or changed: an operator accepted it, perhaps asking another replica.
func (n *Line) forgetGone(s store.Snapshot) {
	for key, revision := range n.holds().keys {
		if r := s.Get(key); r == nil || r.Revision != revision {
			n.Release(key)
		}
	}
}

func (n *Line) reached(revision uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.acknowledged >= revision
}
