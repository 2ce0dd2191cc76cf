package access

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/causeway-mesh/causeway/server"
)

// checkOrigin refuses what a browser sends for a foreign page. Over loopback the connection itself is the credential,
// and a browser attaches client certificates by itself, so every request is judged:
//   - the Host of a request in plaintext, which is loopback's, must name this machine unless a token is presented: a page whose name
//     was pointed to 127.0.0.1 (DNS rebinding) still sends its own name, and has no token;
//   - an Origin must be the server's own;
//   - Sec-Fetch-Site, which pages cannot set, must not name another site.
func checkOrigin(r *http.Request) error {
	if _, given := r.Header["Authorization"]; r.TLS == nil && !given && overLoopback(r) && !server.LocalHost(r.Host) {
		return &OriginError{"the header Host names another machine: call the server by its loopback address or localhost"}
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		switch site {
		case "", "same-origin", "none":
		default:
			return &OriginError{"a page of another site may not call this server (Sec-Fetch-Site: " + site + ")"}
		}
	}
	for _, origin := range r.Header["Origin"] {
		if !ownOrigin(r, origin) {
			return &OriginError{"a page of another origin may not call this server (Origin)"}
		}
	}
	return nil
}

// ownOrigin reports whether origin is the server's, as the request names it.
func ownOrigin(r *http.Request, origin string) bool {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == scheme && strings.EqualFold(u.Host, r.Host)
}
