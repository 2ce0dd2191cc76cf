package kds

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookInterval is the interval between two looks at a connection. After silentLooks looks without a sign of life
	// the connection is closed: the global's ping is due twice in that time, and that of a zone too.
	lookInterval = 10 * time.Second
	silentLooks  = 3
	// slowest is the rate, in bytes a second, at which a peer must accept waiting data to count as slow rather than
	// gone: half of what 4 kbit/s carries.
	slowest = 250
	// longestBacklog is how long an answer to a ping may wait behind other data. The looks notice a peer that is gone
	// long before.
	longestBacklog = time.Hour
)

// traffic counts the bytes in both directions of a connection up to one moment.
type traffic struct {
	// came counts the bytes that arrived, took those that the peer's kernel acknowledged.
	came, took uint64
	// waits is set while the peer has not acknowledged all bytes.
	waits bool
}

// moved reports whether the peer accepted its share of the waiting data in the time since then. A peer that
// acknowledges everything at once proves nothing: the kernel does so for a stopped process, too.
func (p traffic) moved(then traffic, since time.Duration) bool {
	return p.waits && p.took > then.took && float64(p.took-then.took) >= slowest*since.Seconds()
}

// transport watches the connection under a peer's streams. A nil transport knows nothing. Safe for concurrent use.
type transport struct {
	conn   net.Conn // the innermost connection, which the kernel knows
	hangUp func()
	read   atomic.Int64 // bytes read, for connections without kernel statistics

	// turn is the part of lookout that looks at it; guarded by that.
	turn int

	mu      sync.Mutex
	watched bool        // guarded by mu: since watch, until the connection is closed or its peer is gone
	timer   *time.Timer // guarded by mu: of watch; nil with a lookout
	lookout *lookout    // guarded by mu
	heard   int64       // guarded by mu: the value of read at the last look
	last    traffic     // guarded by mu: at the last look, if known is set
	known   bool        // guarded by mu
	silent  int         // guarded by mu: looks without a sign of life
}

func newTransport(conn net.Conn) *transport {
	return &transport{conn: underneath(conn), hangUp: func() { _ = conn.Close() }}
}

// underneath returns the connection that the kernel knows.
func underneath(conn net.Conn) net.Conn {
	for {
		inner, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = inner.NetConn()
	}
}

// look returns the current counts.
func (t *transport) look() traffic {
	if t == nil {
		return traffic{}
	}
	if p, ok := trafficOf(t.conn); ok {
		return p
	}
	return traffic{came: uint64(t.read.Load())} //nolint:gosec // bytes are not negative
}

// watch closes the connection once the peer has given no sign of life for a while, until rest is called. gRPC's own
// pings cannot detect that: over a slow link their answers queue behind the data.
func (t *transport) watch(interval time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beginLocked()
	t.timer = time.AfterFunc(interval, func() { t.check(interval) })
}

// beginLocked notes what there is before the first look. The caller holds t.mu.
func (t *transport) beginLocked() {
	t.watched = true
	t.heard, t.last, t.known = t.read.Load(), t.look(), true
}

func (t *transport) check(interval time.Duration) {
	if t.glance(interval) {
		go t.hangUp() // it calls rest
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched {
		t.timer.Reset(interval)
	}
}

// glance looks for signs of life since the last look, and reports, once, that there have been none for a while.
func (t *transport) glance(interval time.Duration) (gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.watched {
		return false
	}
	if heard := t.read.Load(); heard != t.heard { // spares asking the kernel
		t.heard, t.known, t.silent = heard, false, 0
		return false
	}
	now := t.look()
	if t.silent++; t.known && (now.came != t.last.came || now.moved(t.last, interval)) {
		t.silent = 0
	}
	t.last, t.known = now, true
	t.watched = t.silent < silentLooks
	return !t.watched
}

// rest ends watch.
func (t *transport) rest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = false
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if t.lookout != nil {
		t.lookout.leave(t)
		t.lookout = nil
	}
}
