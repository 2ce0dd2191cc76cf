package api

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Changing is a state that tells of its changes: each change after Wait closes a channel that next returned before it. The
// caller must call end.
type Changing interface {
	Wait() (next func() <-chan struct{}, end func())
}

// shareOfLooks bounds the looks of one waiting request: the time between two is so many times as long as one takes. A peer
// may make a state large, and change it all the time.
const shareOfLooks = 50

// AwaitOther answers with a state, which look returns with its revision. If the query has `watch`, it first looks until the
// revision is not the one that the query names: again after each change, at most every 200 ms, and a last time after
// Config.WatchWait. Then it answers 204. A waiting request costs the server only an entry and a channel: it keeps nothing
// of what it saw. Its errors are those of the caller's rights and budget.
func (s *Server) AwaitOther(w http.ResponseWriter, r *http.Request, of Changing, look func() (state any, revision string)) error {
	if !r.URL.Query().Has(watchQuery) {
		state, _ := look()
		return WriteJSON(w, http.StatusOK, state)
	}
	seen := r.URL.Query().Get(watchQuery)
	if seen == "" || len(seen) > maxStateRevision {
		return BadField(watchQuery, "want the revision of an earlier answer, or 0 for what is there now, got %q", seen)
	}
	leave, err := s.watches.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), s.config.WatchWait)
	defer cancel()
	next, end := of.Wait()
	defer end()
	for {
		changed, begun, over := next(), time.Now(), ctx.Err()
		if state, revision := look(); revision != seen {
			return WriteJSON(w, http.StatusOK, state)
		}
		if errors.Is(over, context.Canceled) {
			return over
		} else if over != nil {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		rest := max(liveRest, shareOfLooks*time.Since(begun))
		select {
		case <-changed:
			select {
			case <-time.After(rest):
			case <-s.draining:
			case <-ctx.Done():
			}
		case <-s.draining:
			w.WriteHeader(http.StatusNoContent)
			return nil
		case <-ctx.Done():
		}
		if err := again(r.Context()); err != nil {
			return err
		}
	}
}

// maxStateRevision bounds the text of a revision of a state, in bytes.
const maxStateRevision = 64
