package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// watchQuery makes a list wait until something that it shows has changed after a revision.
const watchQuery = "watch"

// watchWait is the longest time that a list waits for a change.
const watchWait = 20 * time.Second

// awaitChange waits until a resource that the list may show has changed after the revision of the query, and reports
// whether one has. It returns at once for the revision 0, and for one that is not in the changelog. A waiting request
// holds no turn of its user, and nothing of the server but a place and a channel.
func (s *Server) awaitChange(r *http.Request) (changed bool, err error) {
	d, err := descriptorOf(r)
	if err != nil {
		return false, err
	}
	reader, err := s.mayReadSome(r, d.Type)
	if err != nil {
		return false, err
	}
	text := r.URL.Query().Get(watchQuery)
	seen, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		return false, BadField(watchQuery, "want the revision of an earlier answer, or 0 for what is there now, got %q", text)
	case d.Type.Live():
		return false, BadField(watchQuery, "a %s is not stored, so its changes have no revision: leave it out", d.Type)
	case seen == 0:
		return true, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.config.WatchWait)
	defer cancel()
	for {
		_, next := s.config.Store.Changed()
		commits, ok := s.config.Store.Changes(seen)
		if !ok {
			return true, nil
		}
		for _, commit := range commits {
			if concerns(commit, d.Type, r.PathValue("mesh"), reader) {
				return true, nil
			}
			seen = commit.Revision
		}
		select {
		case <-next:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return false, ctx.Err()
			}
			return false, nil
		}
		if err := again(r.Context()); err != nil {
			return false, err
		}
		if reader, err = s.mayReadSome(r, d.Type); err != nil {
			return false, err
		}
	}
}

// concerns reports whether a commit changed a resource of the type and mesh that the reader may read, before or after.
func concerns(commit *store.Commit, t resources.Type, mesh string, reader *Reader) bool {
	for _, change := range commit.Changes {
		key := change.Key()
		if key.Type != t || mesh != "" && key.Mesh != mesh {
			continue
		}
		if change.New != nil && reader.May(change.New) || change.Old != nil && reader.May(change.Old) {
			return true
		}
	}
	return false
}
