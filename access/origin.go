package access

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// checkOrigin refuses what a browser sends for a foreign page. Over loopback the connection itself is the credential,
// and a browser attaches client certificates by itself, so every request is judged:
//   - the Host of a request in plaintext, which is loopback's, must name this machine unless a token is presented: a page whose name
//     was pointed to 127.0.0.1 (DNS rebinding) still sends its own name, and has no token;
//   - an Origin must be the server's own;
//   - Sec-Fetch-Site, which pages cannot set, must not name another site.
func checkOrigin(r *http.Request) error {
	if _, given := r.Header["Authorization"]; r.TLS == nil && !given && overLoopback(r) && !localHost(r.Host) {
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

// localHost reports whether the name of a Host header can only mean this machine.
func localHost(host string) bool {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil && port != "" { // localhost:1.evil.example
			return false
		}
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// ownOrigin reports whether origin is the server's, as the request calls it.
func ownOrigin(r *http.Request, origin string) bool {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == scheme && strings.EqualFold(u.Host, r.Host)
}
