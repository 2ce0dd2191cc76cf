package access

import (
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/server"
)

// overLoopback reports whether both ends are on this machine.
func overLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopback(local.String()) && isLoopback(r.RemoteAddr)
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// ordinary are the headers, in lower case, of a program or a browser that calls directly. Proxies invent new headers
// every year, so any header outside this list removes loopback's trust.
var ordinary = map[string]bool{
	"accept": true, "accept-charset": true, "accept-encoding": true, "accept-language": true,
	"cache-control": true, "connection": true, "content-encoding": true, "content-language": true, "content-length": true,
	"content-type": true, "cookie": true, "date": true, "dnt": true, "expect": true,
	"idempotency-key": true, "if-match": true, "if-modified-since": true, "if-none-match": true,
	"if-unmodified-since": true,
	"keep-alive":          true, "origin": true, "pragma": true, "priority": true, "range": true, "referer": true,
	"save-data": true,
	"sec-gpc":   true, "sec-purpose": true, "transfer-encoding": true, "upgrade-insecure-requests": true,
	"user-agent": true,
	// Tracing, and what page scripts add.
	"baggage": true, "traceparent": true, "tracestate": true, "x-requested-with": true,
}

// notLocal returns why a request over loopback may have come through a proxy, or "" if there is no sign of that. One
// sign is enough, whatever its value: a proxy that joins lines, or a client that sends an empty first one, must not
// hide another.
func notLocal(r *http.Request) string {
	for name := range r.Header {
		if low := strings.ToLower(name); !ordinary[low] && !strings.HasPrefix(low, "sec-fetch-") &&
			!strings.HasPrefix(low, "sec-ch-") {
			return fmt.Sprintf("the request may have come through a proxy: header %q", name)
		}
	}
	switch {
	case len(r.Trailer) > 0:
		return "the request has trailers, which proxies send"
	case !hopOnly(r.Header["Connection"]):
		return "the request may have come through a proxy: header \"Connection\" names headers that were removed"
	case r.ProtoMajor != 1 || r.ProtoMinor != 1:
		return "the request does not use HTTP/1.1, as programs do"
	case r.URL.Host != "" || r.URL.Scheme != "":
		return "the request is in the form for a proxy: its target is a full URL"
	}
	if err := server.PeerIsOwner(r); err != nil {
		return err.Error()
	}
	return ""
}

// hopOnly reports whether a Connection header concerns only the connection, and names no header that a proxy must
// remove.
func hopOnly(values []string) bool {
	for _, value := range values {
		for option := range strings.SplitSeq(value, ",") {
			switch strings.ToLower(strings.TrimSpace(option)) {
			case "", "close", "keep-alive":
			default:
				return false
			}
		}
	}
	return true
}

// misplaced lists headers in which programs put credentials but which this server does not read.
var misplaced = []string{"Proxy-Authorization", "X-Auth-Token", "X-Api-Key", "X-Access-Token", "X-Token"}

// elsewhere refuses a credential where the server does not read it. A caller who sends one does not mean to act without
// it.
func elsewhere(r *http.Request) error {
	for _, name := range misplaced {
		if _, given := r.Header[name]; given {
			return &LoginError{Method: ByToken, Reason: "a credential in the header " + name,
				Hint: "send a token only as Authorization: Bearer TOKEN"}
		}
	}
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if name, _, _ := strings.Cut(part, "="); strings.EqualFold(name, "access_token") {
			return &LoginError{Method: ByToken, Reason: "a token in the URL",
				Hint: "send a token only as Authorization: Bearer TOKEN; logs on its way contain this one: revoke it"}
		}
	}
	return nil
}
