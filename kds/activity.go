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

// Activity distinguishes a slow peer from one that is gone: over 4 kbit/s the certificates of both sides take a quarter
// of a minute. The zero value is ready to use, for one connection at a time. Safe for concurrent use.
type Activity struct {
	bytes     atomic.Int64
	transport atomic.Pointer[transport]
}

// Credentials returns c, and counts the bytes that arrive on its connections.
func (h *Activity) Credentials(c credentials.TransportCredentials) credentials.TransportCredentials {
	return activityCredentials{c, h}
}

// While returns a context that ends once no byte has arrived for the time silence, and after a minute in any case.
func (h *Activity) While(ctx context.Context, silence time.Duration) (context.Context, context.CancelFunc) {
	return h.within(ctx, silence, longestHandshake)
}

// within is While with another limit.
func (h *Activity) within(ctx context.Context, silence, limit time.Duration) (context.Context, context.CancelFunc) {
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

type activityCredentials struct {
	credentials.TransportCredentials
	activity *Activity
}

// ClientHandshake implements credentials.TransportCredentials.
func (c activityCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn,
	credentials.AuthInfo, error) {
	under := newTransport(raw)
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, activityConn{raw, c.activity, under})
	if err == nil {
		under.watch(lookInterval)
		c.activity.transport.Store(under)
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (c activityCredentials) Clone() credentials.TransportCredentials {
	return activityCredentials{c.TransportCredentials.Clone(), c.activity}
}

type activityConn struct {
	net.Conn
	activity  *Activity
	transport *transport
}

// Read implements net.Conn.
func (c activityConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.activity.bytes.Add(int64(n))
	c.transport.read.Add(int64(n))
	return n, err
}

// Close implements net.Conn.
func (c activityConn) Close() error {
	c.transport.rest()
	return c.Conn.Close()
}
