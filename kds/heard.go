package kds

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// longestHandshake is how long a peer may take in all to connect and to answer for the first time, while something is heard of it.
const longestHandshake = time.Minute

// Heard notices that a peer is slow rather than gone: over 4 kbit/s the certificates of both sides take a quarter of a minute. The zero value
// is good, for one connection at a time; safe for concurrent use.
type Heard struct{ bytes atomic.Int64 }

// Credentials are c, with what arrives on their connections counted.
func (h *Heard) Credentials(c credentials.TransportCredentials) credentials.TransportCredentials {
	return heardCredentials{c, h}
}

// While returns a context that ends once nothing was heard for as long as silence, and after a minute in any case.
func (h *Heard) While(ctx context.Context, silence time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, max(silence, longestHandshake))
	heard, gone := context.WithCancelCause(ctx)
	last := h.bytes.Load()
	var look *time.Timer
	armed := make(chan struct{})
	look = time.AfterFunc(silence, func() {
		<-armed
		if now := h.bytes.Load(); now != last {
			last = now
			look.Reset(silence)
			return
		}
		gone(fmt.Errorf("%w: nothing was heard for %s", context.DeadlineExceeded, silence))
	})
	close(armed)
	return heard, func() { look.Stop(); gone(nil); cancel() }
}

type heardCredentials struct {
	credentials.TransportCredentials
	heard *Heard
}

// ClientHandshake implements credentials.TransportCredentials.
func (c heardCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return c.TransportCredentials.ClientHandshake(ctx, authority, heardConn{raw, c.heard})
}

// Clone implements credentials.TransportCredentials.
func (c heardCredentials) Clone() credentials.TransportCredentials {
	return heardCredentials{c.TransportCredentials.Clone(), c.heard}
}

type heardConn struct {
	net.Conn
	heard *Heard
}

// Read implements net.Conn.
func (c heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.heard.bytes.Add(int64(n))
	return n, err
}
