package api

import (
	"net/http"

	"github.com/causeway-mesh/causeway/access"
)

// Page is a page for people, which asks this API as everybody does. web.Page implements it.
type Page interface {
	http.Handler
	// Serves reports whether a path is one of the page's. No path of the API is.
	Serves(path string) bool
	// Built reports whether the program has the page.
	Built() bool
}

// pagePath is the path of the page, in the index.
const pagePath = "/ui/"

// servePage answers requests for the page, and reports whether this was one. Its files are the same for everybody and
// tell nothing of this server, so they need no credential: with them a person signs in. A connection without one gets a
// few of them. A request for one has no body.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) bool {
	if s.config.Page == nil || !s.config.Page.Serves(r.URL.Path) {
		return false
	}
	r.Pattern = "GET " + pagePath
	if s.config.Guard != nil {
		may, last := s.config.Guard.Look(r)
		if last {
			hangUp(w.Header())
		}
		if !may {
			s.fail(w, r, access.ErrTooMany)
			return true
		}
	}
	if r.ContentLength != 0 {
		hangUp(w.Header())
	}
	s.config.Page.ServeHTTP(w, r)
	return true
}
