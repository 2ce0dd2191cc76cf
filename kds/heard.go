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
type Heard struct {
	bytes     atomic.Int64
	transport atomic.Pointer[transport]
}

// Credentials are c, with what arrives on their connections counted.
func (h *Heard) Credentials(c credentials.TransportCredentials) credentials.TransportCredentials {
	return heardCredentials{c, h}
}

// While returns a context that ends once nothing was heard for as long as silence, and after a minute in any case.
func (h *Heard) While(ctx context.Context, silence time.Duration) (context.Context, context.CancelFunc) {
	return h.within(ctx, silence, longestHandshake)
}

// within is While with another limit.
func (h *Heard) within(ctx context.Context, silence, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, max(silence, limit))
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
	under := newTransport(raw)
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, heardConn{raw, c.heard, under})
	if err == nil {
		under.watch(lookInterval)
		c.heard.transport.Store(under)
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (c heardCredentials) Clone() credentials.TransportCredentials {
	return heardCredentials{c.TransportCredentials.Clone(), c.heard}
}

type heardConn struct {
	net.Conn
	heard     *Heard
	transport *transport
}

// Read implements net.Conn.
func (c heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.heard.bytes.Add(int64(n))
	c.transport.read.Add(int64(n))
	return n, err
}

// Close implements net.Conn.
func (c heardConn) Close() error {
	c.transport.rest()
	return c.Conn.Close()
}
