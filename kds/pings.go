package kds

import (
	"net"
	"sync"
	"time"
)

const (
	// pingDelay is the longest time that the answer to a ping of the peer's bandwidth estimator waits for another write.
	pingDelay = 5 * time.Second
	// pingPause is the time after which such an answer goes with any write, not only with a large one: a peer whose ping
	// is unanswered sends no other.
	pingPause = time.Second
	// pingFlow is the size of a write, in bytes, from which it is one of many: the peer estimates for those.
	pingFlow = 4 << 10
	// pingBeat is the interval at which a server's own pings leave, those of all connections together. One by one, each of
	// them and each answer would wake the process.
	pingBeat = time.Second
)

// estimate is the HTTP/2 frame that answers the ping by which gRPC for Go estimates the capacity of a connection. A
// client with default options sends one for each arrival, with a frame for its window, unless the last is unanswered. So
// answering each at once costs both ends as many packets as the messages. Keepalive pings differ from it.
var estimate = string([]byte{0, 0, 8, 6, 1, 0, 0, 0, 0, 2, 4, 16, 16, 9, 14, 7, 7})

// question is the HTTP/2 frame by which gRPC for Go asks whether the peer is there.
var question = string([]byte{0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})

// JoinPings returns conn, which holds such answers back until a large write, any write after pingPause, or for pingDelay,
// and gRPC's own keepalive pings until the next write or the next whole second of the clock.
// conn is what a gRPC server writes frames to, so behind TLS. Only one goroutine at a time may write.
func JoinPings(conn net.Conn) net.Conn { return joinedConn{conn, &pings{to: conn}} }

type joinedConn struct {
	net.Conn
	pings *pings
}

// Write implements net.Conn.
func (c joinedConn) Write(b []byte) (int, error) { return c.pings.write(b) }

// pings holds back one answer, and one question.
type pings struct {
	to net.Conn

	mu    sync.Mutex
	held  bool        // guarded by mu
	since time.Time   // guarded by mu: when held became true
	armed bool        // guarded by mu: timer is going to fire
	timer *time.Timer // guarded by mu
	asks  bool        // guarded by mu: a question waits for the beat
	beat  *time.Timer // guarded by mu
}

// write writes b, which ends with a frame if it is smaller than gRPC's buffer, so that an answer may follow it.
func (p *pings) write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.held && string(b) == estimate:
		p.hold()
		return len(b), nil
	case !p.asks && string(b) == question:
		p.ask()
		return len(b), nil
	}
	before := ""
	if p.asks {
		p.asks, before = false, question
	}
	if p.held && (len(b) >= pingFlow || time.Since(p.since) >= pingPause) {
		p.held = false
		before += estimate
	}
	if before == "" {
		return p.to.Write(b)
	}
	joined := joinedBuffers.Get().(*[]byte)
	defer joinedBuffers.Put(joined)
	*joined = append(append((*joined)[:0], before...), b...)
	n, err := p.to.Write(*joined)
	return max(n-len(before), 0), err
}

// ask keeps the question for a write, or for the next beat. The caller holds p.mu.
func (p *pings) ask() {
	now := time.Now()
	p.asks = true
	wait := now.Truncate(pingBeat).Add(pingBeat).Sub(now)
	if p.beat == nil {
		p.beat = time.AfterFunc(wait, p.flushQuestion)
	} else {
		p.beat.Reset(wait)
	}
}

// flushQuestion sends a question that no write came for. If that fails, the next read or write fails too.
func (p *pings) flushQuestion() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asks {
		p.asks = false
		_, _ = p.to.Write([]byte(question))
	}
}

// hold keeps the answer for a write, or for pingDelay. The caller holds p.mu.
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

// flush sends an answer that no write came for. If that fails, the next read or write fails too.
func (p *pings) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	if !p.held {
		return
	}
	if left := pingDelay - time.Since(p.since); left > 0 { // there has been another one since
		p.armed = true
		p.timer.Reset(left)
		return
	}
	p.held = false
	_, _ = p.to.Write([]byte(estimate))
}

// joinedBuffers have room for one write of gRPC, writeBuffer bytes, a question and an answer.
var joinedBuffers = sync.Pool{New: func() any { b := make([]byte, 0, writeBuffer+len(question)+len(estimate)); return &b }}
