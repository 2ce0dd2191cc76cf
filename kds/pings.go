package kds

import (
	"net"
	"sync"
	"time"
)

// pingDelay is the longest that an answer to a ping of the other end's estimator waits for company.
const pingDelay = 100 * time.Millisecond

// estimate is the HTTP/2 frame that answers the ping by which gRPC of Go finds how much a connection can hold. A client
// with default options sends one for whatever arrives, so answering each at once costs as many packets as the messages. Pings that
// keep a connection alive are others.
var estimate = string([]byte{0, 0, 8, 6, 1, 0, 0, 0, 0, 2, 4, 16, 16, 9, 14, 7, 7})

// JoinPings returns conn with such answers going out with what is written next, or a little later. conn is what a gRPC server writes
// frames to, so behind TLS. Only one goroutine at a time may write.
func JoinPings(conn net.Conn) net.Conn { return joinedConn{conn, &pings{to: conn}} }

type joinedConn struct {
	net.Conn
	pings *pings
}

// Write implements net.Conn.
func (c joinedConn) Write(b []byte) (int, error) { return c.pings.write(b) }

// pings holds back one answer.
type pings struct {
	to net.Conn

	mu    sync.Mutex
	held  bool        // guarded by mu
	since time.Time   // guarded by mu: when held became true
	armed bool        // guarded by mu: timer is going to fire
	timer *time.Timer // guarded by mu
}

func (p *pings) write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.held && string(b) == estimate {
		p.hold()
		return len(b), nil
	}
	if !p.held {
		return p.to.Write(b)
	}
	p.held = false
	joined := joinedBuffers.Get().(*[]byte)
	defer joinedBuffers.Put(joined)
	*joined = append(append((*joined)[:0], estimate...), b...)
	n, err := p.to.Write(*joined)
	return max(n-len(estimate), 0), err
}

// hold keeps the answer for the next write, or for a while. p.mu is held.
func (p *pings) hold() {
	p.held, p.since = true, time.Now()
	switch {
	case p.armed:
		return
	case p.timer == nil:
		p.timer = time.AfterFunc(pingDelay, p.flush)
	default:
		p.timer.Reset(pingDelay)
	}
	p.armed = true
}

// flush sends what nothing came for. When that fails, whoever reads or writes next hears of it too.
func (p *pings) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	if !p.held {
		return
	}
	if left := pingDelay - time.Since(p.since); left > 0 { // another one since
		p.armed = true
		p.timer.Reset(left)
		return
	}
	p.held = false
	_, _ = p.to.Write([]byte(estimate))
}

// joinedBuffers are for what gRPC writes at once, writeBuffer bytes, and an answer.
var joinedBuffers = sync.Pool{New: func() any { b := make([]byte, 0, writeBuffer+len(estimate)); return &b }}
