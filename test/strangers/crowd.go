package strangers

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Crowd is many connections that misbehave. Each reconnects a second after it ends.
type Crowd struct {
	// Attempts are used in turn. Addresses are the server's addresses by port, and TLS reports which of the ports have
	// TLS.
	Attempts  []Attempt
	Addresses map[string]string
	TLS       map[string]bool
	// Connections is the number of simultaneous connections. From are their local addresses, in turn: any if empty.
	Connections int
	From        []net.IP

	came atomic.Int64
}

// Came returns the number of connections so far.
func (c *Crowd) Came() int64 { return c.came.Load() }

// Run misbehaves until ctx ends, and waits for all connections.
func (c *Crowd) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range c.Connections {
		all.Go(func() {
			attempt := c.Attempts[i%len(c.Attempts)]
			dialer := &net.Dialer{}
			if len(c.From) > 0 {
				dialer.LocalAddr = &net.TCPAddr{IP: c.From[i%len(c.From)]}
			}
			for ok := true; ok; ok = pause(ctx) {
				c.once(ctx, dialer, attempt)
			}
		})
	}
	all.Wait()
}

// once makes one connection. How it ends is up to the server.
func (c *Crowd) once(ctx context.Context, dialer *net.Dialer, attempt Attempt) {
	dialled, err := dialer.DialContext(ctx, "tcp", c.Addresses[attempt.Port])
	if err != nil {
		return
	}
	c.came.Add(1)
	defer dialled.Close()
	defer context.AfterFunc(ctx, func() { _ = dialled.Close() })()
	conn := dialled
	if attempt.InTLS && c.TLS[attempt.Port] {
		config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // a stranger does not care whom it attacks
		if attempt.Port != "api" {
			config.NextProtos = []string{"h2"}
		}
		secured := tls.Client(conn, config)
		if secured.HandshakeContext(ctx) != nil {
			return
		}
		conn = secured
	}
	_ = attempt.Run(ctx, conn) // how it ends is up to the server
}

// pause waits a second. It reports false if ctx has ended.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(time.Second):
		return true
	case <-ctx.Done():
		return false
	}
}
