package kds

import (
	"time"
)

// Pass is the credential by which a zone was admitted. It is safe for concurrent use and cheap to check.
type Pass interface {
	// Err returns the reason why the pass no longer holds, or nil while it does.
	Err() error
	// Until returns the time from which Err may fail although nothing has changed but the time, such as an expiry; zero if
	// there is none.
	Until() time.Time
}

// rechecks holds which passes RecheckDue asks.
type rechecks struct {
	// sessions and held came since all passes were last asked, or with the last call: they were admitted by what was
	// stored before that.
	sessions []*session
	held     []*heldStream
	// due is the first time at which time alone may end a pass; zero if there is none.
	due time.Time
	// last is the time of the last call, by the wall clock alone: that may be set back.
	last time.Time
}

// Recheck ends each session, and each stream held beside one, whose Pass no longer holds. Call it when anything changed
// that passes depend on. Once it returns, a session that it ended can no longer write.
func (g *Global) Recheck() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.recheckAllLocked(g.config.Now().Round(0))
}

// RecheckDue is Recheck for passes that may have ended although nothing changed since the last call of either: because of
// the time, or because they were admitted meanwhile. Call it at intervals. It costs nothing while there are none.
func (g *Global) RecheckDue() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.config.Now().Round(0)
	if due := g.rechecks.due; now.Before(g.rechecks.last) || !due.IsZero() && !now.Before(due) {
		g.recheckAllLocked(now)
		return
	}
	g.rechecks.last = now
	for _, s := range g.rechecks.sessions {
		g.recheckSessionLocked(s)
	}
	for _, h := range g.rechecks.held {
		g.recheckHeldLocked(h)
	}
	g.rechecks.sessions, g.rechecks.held = nil, nil
}

// recheckAllLocked asks all passes. The caller holds g.mu.
func (g *Global) recheckAllLocked(now time.Time) {
	g.rechecks = rechecks{last: now}
	for _, s := range g.sessions {
		g.recheckSessionLocked(s)
	}
	for _, all := range g.held {
		for h := range all {
			g.recheckHeldLocked(h)
		}
	}
}

func (g *Global) recheckSessionLocked(s *session) {
	if err := g.askLocked(s.pass); err != nil {
		s.cancel(err)
	}
}

func (g *Global) recheckHeldLocked(h *heldStream) {
	if err := g.askLocked(h.pass); err != nil {
		g.freeLocked(h.zone, err, func(other *heldStream) bool { return other == h })
	}
}

// askLocked returns why a pass no longer holds, and keeps until when one that does is not asked again. The caller holds
// g.mu.
func (g *Global) askLocked(p Pass) error {
	if p == nil {
		return nil
	}
	var until time.Time
	err := g.config.Panics.Do(serving, func() error {
		err := p.Err()
		until = p.Until()
		return err
	})
	if due := g.rechecks.due; err == nil && !until.IsZero() && (due.IsZero() || until.Before(due)) {
		g.rechecks.due = until
	}
	return err
}
