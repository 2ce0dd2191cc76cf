package access

import (
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/server"
)

// overLoopback reports whether both ends are on this machine, so nothing arrived from elsewhere.
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

// ordinary are the headers of a program or a browser that asks for itself. Proxies invent new ones every year, so what
// takes loopback's trust away is not a list of theirs: it is every header that is not on this list. The names are in
// lower case.
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
	// Tracing, and what scripts of a page add.
	"baggage": true, "traceparent": true, "tracestate": true, "x-requested-with": true,
}

// notLocal returns the reason why a request over loopback may come through a proxy; empty if there is no sign of that.
// One sign is enough, whatever its value: a proxy that joins lines, or a client that sends the first of them empty,
// must not hide another.
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

// hopOnly reports whether a Connection header is about the connection alone, and names no header that a proxy must
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

// misplaced lists places where programs put credentials and this server does not read them.
var misplaced = []string{"Proxy-Authorization", "X-Auth-Token", "X-Api-Key", "X-Access-Token", "X-Token"}

// elsewhere refuses a credential in a place that the server does not read. A caller who sends one does not mean to act
// without it.
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
