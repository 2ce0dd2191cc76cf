package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// RevisionHeader is in the response to every write. The store has the write at this revision, or at an earlier one.
const RevisionHeader = "Causeway-Revision"

// revisionQuery makes a read wait for a revision, so that a write on one replica is visible in a read from another.
const revisionQuery = "revision"

// revisionWait is the longest time that a read waits.
const revisionWait = 10 * time.Second

// awaitRevision waits until the store has the revision that the query of a read asks for, if any. The error is a 400
// for a malformed revision, and a 504 if the revision does not arrive in time.
func (s *Server) awaitRevision(r *http.Request) error {
	text := r.URL.Query().Get(revisionQuery)
	if text == "" {
		return nil
	}
	want, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return BadField(revisionQuery, "want the revision that a write returned, such as 17, got %q", text)
	}
	if now, _ := s.config.Store.Changed(); now >= want {
		return nil
	}
	leave, err := s.watches.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
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
		reason := fmt.Sprintf("this server is at revision %d and did not reach %d within %s: it may have lost its store (see /readyz), or the revision is from another control plane", now, want, s.config.RevisionWait)
		return NewError(http.StatusGatewayTimeout, "Gateway Timeout", reason).WithField(revisionQuery, "%s", reason)
	}
}

// noteRevision adds the store's revision to the response to a successful write.
func (s *Server) noteRevision(r *http.Request, h http.Header, status int) {
	if changes(r.Method) && status < http.StatusBadRequest {
		h.Set(RevisionHeader, strconv.FormatUint(s.config.Store.Snapshot().Revision(), 10))
	}
}
