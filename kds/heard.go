package kds

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// longestHandshake bounds the time that a peer may take to connect and to answer first, as long as bytes arrive from
// it.
const longestHandshake = time.Minute

// Heard distinguishes a slow peer from one that is gone: over 4 kbit/s the certificates of both sides take a quarter of
// a minute. The zero value is ready to use, for one connection at a time. Safe for concurrent use.
type Heard struct {
	bytes     atomic.Int64
	transport atomic.Pointer[transport]
}

// Credentials returns c, and counts the bytes that arrive on its connections.
func (h *Heard) Credentials(c credentials.TransportCredentials) credentials.TransportCredentials {
	return heardCredentials{c, h}
}

// While returns a context that ends once no byte has arrived for the time silence, and after a minute in any case.
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
func (c heardCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn,
	credentials.AuthInfo, error) {
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
