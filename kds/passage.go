package kds

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookInterval is how often a connection is looked at, and silentLooks after how many without a sign of life it is closed: the peer's
	// answer to a ping is due twice in that time.
	lookInterval = 10 * time.Second
	silentLooks  = 3
	// slowest is how many bytes a second a peer must take of what waits for it to count as slow rather than gone: half of what 4 kbit/s
	// carries.
	slowest = 250
	// longestBacklog is how long an answer to a ping may wait behind other data. A peer that is gone is noticed by passages long before.
	longestBacklog = time.Hour
)

// passage is what came and went on a connection until one moment.
type passage struct {
	// came and took are the bytes that arrived, and those that the peer's kernel acknowledged.
	came, took uint64
	// waits is set while there is more for the peer than it has acknowledged.
	waits bool
}

// moved reports whether the peer took its share of what waits for it in the time since then. A peer that acknowledges all at once says
// nothing by it: the kernel does so for a process that is stopped, too.
func (p passage) moved(then passage, since time.Duration) bool {
	return p.waits && p.took > then.took && float64(p.took-then.took) >= slowest*since.Seconds()
}

// transport looks at the connection under a peer's streams. nil knows nothing. Safe for concurrent use.
type transport struct {
	conn   net.Conn // that the kernel knows
	hangUp func()
	read   atomic.Int64 // bytes, of a connection of which the kernel does not tell

	mu     sync.Mutex
	timer  *time.Timer // guarded by mu; nil once the connection is closed, and before watch
	last   passage     // guarded by mu: at the last look
	silent int         // guarded by mu: looks without a sign of life
}

func newTransport(conn net.Conn) *transport {
	return &transport{conn: underneath(conn), hangUp: func() { _ = conn.Close() }}
}

// underneath is the connection that the kernel knows.
func underneath(conn net.Conn) net.Conn {
	for {
		inner, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = inner.NetConn()
	}
}

// look is what is known now.
func (t *transport) look() passage {
	if t == nil {
		return passage{}
	}
	if p, ok := passageOf(t.conn); ok {
		return p
	}
	return passage{came: uint64(t.read.Load())} //nolint:gosec // bytes are not negative
}

// watch closes the connection once the peer has given no sign of life for a while, until rest. gRPC's own pings cannot tell: over a
// slow link their answers stand behind the data.
func (t *transport) watch(interval time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = t.look()
	t.timer = time.AfterFunc(interval, func() { t.check(interval) })
}

func (t *transport) check(interval time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil {
		return
	}
	now := t.look()
	if t.silent++; now.came != t.last.came || now.moved(t.last, interval) {
		t.silent = 0
	}
	t.last = now
	if t.silent < silentLooks {
		t.timer.Reset(interval)
		return
	}
	t.timer = nil
	go t.hangUp() // which rests, and so takes the lock
}

// rest ends watch.
func (t *transport) rest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}
