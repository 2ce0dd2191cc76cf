package api

import (
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/access"
)

// Page is the web page, which calls this API like any client. web.Page implements it.
type Page interface {
	http.Handler
	// ServeSignIn serves the view that ends a sign-in at an identity provider. The page may then also call the URL
	// tokenEndpoint.
	ServeSignIn(w http.ResponseWriter, r *http.Request, tokenEndpoint string)
	// Serves reports whether a path belongs to the page. No path of the API does.
	Serves(path string) bool
	// Built reports whether the program contains the page.
	Built() bool
}

// pagePath is the path of the page in the index.
const pagePath = "/ui/"

// signInPath is the view to which an identity provider redirects a browser. With .json, it says how to sign in there.
const signInPath = pagePath + "signin"

// servePage answers requests for the page, and reports whether this was one. Its files are the same for everybody and
// reveal nothing about this server. They need no credential, because people sign in with them. A connection without a
// credential gets a few of them. Requests for them have no body.
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

// serveSignIn answers requests for signing in at an identity provider, and reports whether this was one. The caller has
// no credential yet: the response has only what the provider publishes, and the client ID.
func (s *Server) serveSignIn(w http.ResponseWriter, r *http.Request) bool {
	view, document := r.URL.Path == signInPath, r.URL.Path == signInPath+".json"
	if r.Method != http.MethodGet || !view && !document || s.config.Guard == nil {
		return false
	}
	how, err := s.config.Guard.SignIn(r.Context())
	switch {
	case view && (err != nil || how == nil):
		return false
	case view:
		s.config.Page.ServeSignIn(w, r, how.Token)
		return true
	case err != nil:
		s.config.Log.Debug("no sign-in by the page", "error", err) // strangers cause this, and must not fill the log
		s.writeError(w, r, NewError(http.StatusServiceUnavailable, "Service Unavailable", "the identity provider is unavailable: try again later"))
		return true
	}
	// Without an identity provider it is null: the page asks each server, and a 404 is an error in a browser's console.
	if err := WriteJSON(w, http.StatusOK, how); err != nil {
		s.config.Log.Debug("answer not sent", "path", r.URL.Path, "error", err)
	}
	return true
}
