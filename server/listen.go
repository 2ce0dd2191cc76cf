package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
)

// Listen opens a TCP listener on addr, "host:port"; port 0 picks one. TCP does not probe connections: what is served on
// them has pings or timeouts of its own, and gRPC takes an unanswered probe of a busy machine for a dead peer. The
// error names the address and what to change. Connections from elsewhere are limited in number and rate, for each
// address.
//
// Its connections are Guests. The server calls Prove for those whose callers are authenticated, and the others end
// soon.
func Listen(addr string) (net.Listener, error) { return listen(addr, defaultCrowd()) }

// ListenOpen is like Listen, for a port without authentication: it accepts few such connections.
func ListenOpen(addr string) (net.Listener, error) { return listen(addr, openCrowd()) }

func listen(addr string, limits crowdLimits) (net.Listener, error) {
	config := net.ListenConfig{KeepAlive: -1}
	l, err := config.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q (choose another address, or port 0 for a free one): %w", addr, err)
	}
	return limited(l, limits), nil
}

// Fence makes the connections of l, a listener of Listen, send nothing while held returns an error: the first attempt
// closes them. held must be quick.
func Fence(l net.Listener, held func() error) {
	if c, ok := l.(*crowd); ok {
		c.fence.Store(&held)
	}
}

// IsLoopback reports whether only this machine can reach a listener on a.
func IsLoopback(a net.Addr) bool {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Clients sets the client certificates that an HTTP server requests.
type Clients struct {
	// Ask requests one from each client. The handler verifies the certificate, because it can report why one is
	// invalid.
	Ask bool
	// CAs are sent to clients as a hint; nil sends none.
	CAs *x509.CertPool
}

// SecureHTTP returns l unchanged if only this machine can reach it, and otherwise a listener that serves TLS with c.
func SecureHTTP(l net.Listener, c *Certificate, clients Clients) net.Listener {
	if IsLoopback(l.Addr()) {
		return l
	}
	config := c.TLSConfig()
	config.NextProtos = []string{"http/1.1"}
	if clients.Ask {
		config.ClientAuth, config.ClientCAs = tls.RequestClientCert, clients.CAs
	}
	return tls.NewListener(l, config)
}
