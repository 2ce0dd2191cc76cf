package server

import (
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// LocalHost reports whether the name of a Host header can only mean this machine.
func LocalHost(host string) bool {
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

// withoutPages keeps pages of other sites, in a browser on this machine, from endpoints that need no credential over
// loopback. A page whose name was pointed to 127.0.0.1 (DNS rebinding) sends that name as the Host. Others name their
// origin.
func withoutPages(h http.Handler) http.Handler {
	machine, _ := os.Hostname() // without one, only loopback names are this machine's
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if tcp, ok := local.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
			h.ServeHTTP(w, r) // everybody who reaches the address may call
			return
		}
		name, _, _ := strings.Cut(r.Host, ":")
		switch {
		case !LocalHost(r.Host) && (machine == "" || !strings.EqualFold(name, machine)):
			http.Error(w, "the header Host names another machine: ask by localhost or the loopback address, or have the proxy in front send it", http.StatusForbidden)
		case fromAnotherSite(r.Header):
			http.Error(w, "a page of another site may not ask this server", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// fromAnotherSite reports whether a browser says that the request is from a page of another origin. People who open
// pages here send no Origin.
func fromAnotherSite(h http.Header) bool {
	for _, site := range h["Sec-Fetch-Site"] {
		if site != "" && site != "same-origin" && site != "none" {
			return true
		}
	}
	return len(h["Origin"]) > 0
}
