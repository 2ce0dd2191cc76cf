package api

import (
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/access"
)

// Page is a page for people, which asks this API as everybody does. web.Page implements it.
type Page interface {
	http.Handler
	// ServeSignIn serves the view in which a sign-in at an identity provider ends: the page may then also ask the URL
	// tokenEndpoint.
	ServeSignIn(w http.ResponseWriter, r *http.Request, tokenEndpoint string)
	// Serves reports whether a path is one of the page's. No path of the API is.
	Serves(path string) bool
	// Built reports whether the program has the page.
	Built() bool
}

// pagePath is the path of the page, in the index.
const pagePath = "/ui/"

// signInPath is the view to which an identity provider sends a browser back, and, with .json, how to sign in there.
const signInPath = pagePath + "signin"

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
	if strings.HasPrefix(r.URL.Path, signInPath) && s.serveSignIn(w, r) {
		return true
	}
	s.config.Page.ServeHTTP(w, r)
	return true
}

// serveSignIn answers requests that belong to signing in at an identity provider, and reports whether this was one.
// Whoever signs in has no credential yet: the answer is what the provider publishes, and the client ID.
func (s *Server) serveSignIn(w http.ResponseWriter, r *http.Request) bool {
	view, document := r.URL.Path == signInPath, r.URL.Path == signInPath+".json"
	if r.Method != http.MethodGet || !view && !document || s.config.Guard == nil {
		return false
	}
	how, err := s.config.Guard.SignIn()
	switch {
	case view && (err != nil || how == nil):
		return false
	case view:
		s.config.Page.ServeSignIn(w, r, how.Token)
		return true
	case err != nil:
		s.config.Log.Debug("no sign-in by the page", "error", err) // strangers ask, and a log is not for them to fill
		s.fail(w, r, NewError(http.StatusServiceUnavailable, "Service Unavailable", "the identity provider is unavailable: try again later"))
		return true
	case how == nil:
		s.fail(w, r, NewError(http.StatusNotFound, "Not Found", "this server has no identity provider: sign in with a user token"))
		return true
	}
	if err := WriteJSON(w, http.StatusOK, how); err != nil {
		s.config.Log.Debug("answer not sent", "path", r.URL.Path, "error", err)
	}
	return true
}
