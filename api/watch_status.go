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

// AwaitOther waits, if the query has `watch`, until the revision of a state is not the one that the query names, and reports
// whether to answer: if not, it has answered 204 after Config.WatchWait. revision is called again after each change, at most
// every 200 ms. A waiting request costs the server only an entry and a channel. Its errors are those of the caller's rights
// and budget.
func (s *Server) AwaitOther(w http.ResponseWriter, r *http.Request, of Changing, revision func() string) (answer bool, err error) {
	if !r.URL.Query().Has(watchQuery) {
		return true, nil
	}
	seen := r.URL.Query().Get(watchQuery)
	if seen == "" || len(seen) > maxStateRevision {
		return false, BadField(watchQuery, "want the revision of an earlier answer, or 0 for what is there now, got %q", seen)
	}
	leave, err := s.watches.enter(r.Context())
	if err != nil {
		return false, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), s.config.WatchWait)
	defer cancel()
	next, end := of.Wait()
	defer end()
	for {
		changed := next()
		if revision() != seen {
			return true, nil
		}
		select {
		case <-changed:
			select {
			case <-time.After(liveRest):
			case <-s.draining:
			case <-ctx.Done():
			}
		case <-s.draining:
			w.WriteHeader(http.StatusNoContent)
			return false, nil
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return false, ctx.Err()
			}
			w.WriteHeader(http.StatusNoContent)
			return false, nil
		}
		if err := again(r.Context()); err != nil {
			return false, err
		}
	}
}

// maxStateRevision bounds the text of a revision of a state, in bytes.
const maxStateRevision = 64
