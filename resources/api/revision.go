package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// RevisionHeader is in the answer to every write: the store has the write at this revision, or at an earlier one.
const RevisionHeader = "Causeway-Revision"

// revisionQuery makes a read wait for a revision: what was written on one replica is then in what another one answers.
const revisionQuery = "revision"

// revisionWait is how long a read waits.
const revisionWait = 10 * time.Second

// awaitRevision waits until the store has the revision that the query of a read asks for, if it does. The error is a 400 for what
// is no revision, and a 504 when it does not come in time.
func (s *Server) awaitRevision(r *http.Request) error {
	text := r.URL.Query().Get(revisionQuery)
	if text == "" {
		return nil
	}
	want, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return BadField(revisionQuery, "want the revision that a write was answered with, such as 17, got %q", text)
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.config.RevisionWait)
	defer cancel()
	for {
		now, next := s.config.Store.Changed()
		if now >= want {
			return nil
		}
		select {
		case <-next:
			continue
		case <-ctx.Done():
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		reason := fmt.Sprintf("this server is at revision %d and did not come to %d within %s: it may have lost its store (see /readyz), or the revision is another mesh's", now, want, s.config.RevisionWait)
		return NewError(http.StatusGatewayTimeout, "Gateway Timeout", reason).WithField(revisionQuery, "%s", reason)
	}
}

// noteRevision puts the store's revision into the answer to a write that was done.
func (s *Server) noteRevision(r *http.Request, h http.Header, status int) {
	if changes(r.Method) && status < http.StatusBadRequest {
		h.Set(RevisionHeader, strconv.FormatUint(s.config.Store.Snapshot().Revision(), 10))
	}
}
