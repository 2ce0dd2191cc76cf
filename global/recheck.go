package global

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// sessions is implemented by kds.Global.
type sessions interface {
	// Recheck asks the passes of all sessions; RecheckDue those that time may have ended, and new ones.
	Recheck()
	RecheckDue()
}

// rechecks decides at each tick which sessions are asked for their passes again. A pass depends on what is stored of
// credentials and zones, on the time, and on what its connection shows.
type rechecks struct {
	store store.Reader
	// seen is the revision up to which all passes hold; zero at first.
	seen uint64
	// shown counts the connections that show another certificate than before; asked is its value at the last Recheck.
	shown atomic.Uint64
	asked uint64
}

// tick ends the sessions whose passes no longer hold. Only one goroutine at a time calls it.
func (r *rechecks) tick(sync sessions) {
	shown := r.shown.Load()
	seen, _ := r.store.Changed()
	if shown != r.asked || r.credentialsChanged(seen) {
		sync.Recheck()
	} else {
		sync.RecheckDue()
	}
	r.asked, r.seen = shown, seen
}

// credentialsChanged reports whether a commit since the last tick, up to now or later, changed anything that passes are
// judged by; true if that is unknown.
func (r *rechecks) credentialsChanged(now uint64) bool {
	if now == r.seen {
		return false
	}
	commits, ok := r.store.Changes(r.seen)
	return !ok || r.seen == 0 || slices.ContainsFunc(commits, func(c *store.Commit) bool {
		return slices.ContainsFunc(c.Changes, func(one store.Change) bool {
			t := one.Key().Type
			return t == resources.TypeSecret || t == resources.TypeZone
		})
	})
}

// first returns the earlier of two times, either of which may be none: zero.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
