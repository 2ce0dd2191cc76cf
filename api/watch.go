package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// watchQuery makes a list wait until something that it shows has changed after a revision.
const watchQuery = "watch"

// watchWait is the longest time that a list waits for a change.
const watchWait = 20 * time.Second

// liveRest is the least time between two looks of a watch at the live status: proxies and zones report their counters all
// the time, and each look authorizes the caller again.
const liveRest = 200 * time.Millisecond

// maxWatchesOfUser bounds one user's lists that wait for a change, and reads that wait for a revision. Each change of
// the store wakes all of them, and a list authorizes its caller again.
const maxWatchesOfUser = 64

// watches counts waiting requests, by user.
type watches struct {
	mu    sync.Mutex
	users map[string]int // guarded by mu; a user without waiting requests has no entry
}

// enter counts a request of the caller, who must call leave. Loopback without a credential is not limited. An error
// becomes a 429.
func (w *watches) enter(ctx context.Context) (leave func(), err error) {
	subject := access.SubjectOf(ctx)
	if subject.Method == access.ByLoopback {
		return func() {}, nil
	}
	user := subject.Budget()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users[user] >= maxWatchesOfUser {
		return nil, tooMuch("you have %d requests that wait for a change or a revision, the maximum: end some of them", maxWatchesOfUser)
	}
	w.users[user]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.users[user]--; w.users[user] == 0 {
			delete(w.users, user)
		}
	}, nil
}

// Drain answers the lists that wait for a change, so that a stopping server need not wait for them. It may be called
// again.
func (s *Server) Drain() { s.drain.Do(func() { close(s.draining) }) }

// awaitChange waits until something that the list may show has changed after the revision of the query, and reports whether
// something has. It returns at once for 0, and for one that is no longer in the changelogs. It waits for a future
// revision, which another replica may have reported. A waiting request does not hold its user's turn; it costs the server
// only an entry and a channel.
func (s *Server) awaitChange(r *http.Request, row *Row) (changed bool, err error) {
	t, overviews := resources.Type(row.Type), row.Overviews
	if !overviews {
		d, err := descriptorOf(r)
		if err != nil {
			return false, err
		}
		t = d.Type
	}
	if _, err := s.mayReadSome(r, t); err != nil {
		return false, err
	}
	problems, err := BoolQuery(r.URL.Query(), problemsQuery)
	if err != nil {
		return false, err
	}
	seen, err := watchProgress(r, t, overviews)
	if err != nil || seen == (progress{}) {
		return err == nil, err
	}
	leave, err := s.watches.enter(r.Context())
	if err != nil {
		return false, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), s.config.WatchWait)
	defer cancel()
	for {
		now, next := s.config.Store.Changed()
		live, nextLive := s.config.Status.Changed()
		if now >= seen.stored {
			if changed, seen.stored, err = s.changedAfter(r, t, seen.stored, problems); err != nil || changed {
				return changed, err
			}
		}
		if !overviews {
			nextLive = nil
		} else if changed, seen.live, err = s.connectedAfter(r, t, seen.live, live, problems); err != nil || changed {
			return changed, err
		}
		select {
		case <-next:
		case <-nextLive:
			select {
			case <-time.After(liveRest):
			case <-s.draining:
			case <-ctx.Done():
			}
		case <-s.draining:
			return false, nil
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return false, ctx.Err()
			}
			return now < seen.stored, nil // a revision that never arrives belongs to another store
		}
		if err := again(r.Context()); err != nil {
			return false, err
		}
	}
}

// watchProgress returns the progress in the query: up to where the caller knows what has changed.
func watchProgress(r *http.Request, t resources.Type, overviews bool) (progress, error) {
	if overviews {
		return readProgress(r.URL.Query().Get(watchQuery))
	}
	revision, err := watchRevision(r, t)
	return progress{stored: revision}, err
}

// watchRevision returns the revision of the query.
func watchRevision(r *http.Request, t resources.Type) (uint64, error) {
	text := r.URL.Query().Get(watchQuery)
	seen, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		return 0, BadField(watchQuery, "want the revision of an earlier answer, or 0 for what is there now, got %q", text)
	case t.Live():
		return 0, BadField(watchQuery, "a %s is not stored, so its changes have no revision: leave it out", t)
	}
	return seen, nil
}

// changedAfter reports whether the content of a list has changed after a revision and, if not, up to which revision it
// has not. With problems, only what comes or goes with a problem is a change. It returns true for a mesh that is gone, so
// that the list reports it.
func (s *Server) changedAfter(r *http.Request, t resources.Type, seen uint64, problems bool) (changed bool, until uint64, err error) {
	reader, err := s.mayReadSome(r, t)
	if err != nil {
		return false, seen, err
	}
	mesh := r.PathValue("mesh")
	if mesh != "" && s.config.Store.Snapshot().Get(meshKey(mesh)) == nil {
		return true, seen, nil
	}
	commits, ok := s.config.Store.Changes(seen)
	if !ok {
		return true, seen, nil
	}
	var narrowed *withProblems
	if problems {
		narrowed = &withProblems{view: s.view(), reader: reader}
	}
	for _, commit := range commits {
		if concerns(commit, t, mesh, reader, narrowed) {
			return true, seen, nil
		}
		seen = commit.Revision
	}
	return false, seen, nil
}

// concerns reports whether a commit changed a resource of the type and mesh that the reader may read, before or after. If
// narrowed is not nil, it is one that came or went, and has a problem now.
func concerns(commit *store.Commit, t resources.Type, mesh string, reader *Reader, narrowed *withProblems) bool {
	for _, change := range commit.Changes {
		key := change.Key()
		if key.Type != t || mesh != "" && key.Mesh != mesh {
			continue
		}
		if narrowed != nil && !narrowed.changes(&change) {
			continue
		}
		if change.New != nil && reader.May(change.New) || change.Old != nil && reader.May(change.Old) {
			return true
		}
	}
	return false
}
