package server

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Guest is a connection that Listen has accepted. Until Prove is called it is a stranger's: few bytes of it are read, it has
// little time, and places for it are few. A nil Guest is one that nobody watches.
type Guest struct {
	net.Conn
	crowd  *crowd
	peer   *peer
	counts bool // for total, perAddress and the rate

	proven atomic.Bool
	// left is how many bytes more are read of a stranger, frames how many frames. tries and calls count its attempts, and failed says
	// that one was refused.
	left, frames atomic.Int64
	tries, calls atomic.Int32
	failed       atomic.Bool
	// spent: all that is read of a stranger was.
	spent atomic.Bool
	// settled is closed when the guest is proven, or gone.
	settled chan struct{}
	settle  sync.Once
	close   sync.Once
	timer   *time.Timer

	state guestState // guarded by crowd.mu
	since time.Time  // guarded by crowd.mu: when it began to be read from
	paced bool       // guarded by crowd.mu: it has begun when it was its turn
}

type guestState int

const (
	guestArriving guestState = iota
	guestWaiting
	guestServed
	guestSettled
)

func newGuest(conn net.Conn, c *crowd, p *peer, counts bool) *Guest {
	g := &Guest{Conn: conn, crowd: c, peer: p, counts: counts, settled: make(chan struct{})}
	g.left.Store(int64(c.limits.bytes))
	g.frames.Store(int64(c.limits.frames))
	return g
}

// slowLink is how many bytes a stranger has to send for each second more than it has anyhow: half of what 4 kbit/s carry, since for the
// other half of the time it is being told something.
const slowLink = 250

// due closes g after d unless it is proven, or slow. crowd.mu is held.
func (g *Guest) due(d time.Duration) {
	if g.timer == nil {
		g.timer = time.AfterFunc(d, g.overdue)
		return
	}
	g.timer.Reset(d)
}

// overdue closes g, unless it is proven by now or has time left for what it sent.
func (g *Guest) overdue() {
	if g.proven.Load() {
		return
	}
	g.crowd.mu.Lock()
	more := g.more(time.Now())
	if more > 0 {
		g.timer.Reset(more)
	}
	g.crowd.mu.Unlock()
	if more <= 0 {
		_ = g.Close()
	}
}

// more is how much time g has left because what it sent came slowly. crowd.mu is held.
func (g *Guest) more(now time.Time) time.Duration {
	limits := &g.crowd.limits
	if g.state != guestServed || g.failed.Load() || g.spent.Load() || g.crowd.err != nil {
		return 0
	}
	sent := time.Duration(int64(limits.bytes) - g.left.Load())
	return min(limits.proof+sent*time.Second/slowLink, limits.slowest) - now.Sub(g.since)
}

// Prove says that somebody on the connection has proven who they are. It is quick, and may be called again.
func (g *Guest) Prove() {
	if g == nil || !g.proven.CompareAndSwap(false, true) {
		return
	}
	g.crowd.mu.Lock()
	defer g.crowd.mu.Unlock()
	if g.state != guestSettled {
		now := time.Now()
		g.crowd.proves(g, now)
		g.crowd.settle(g, now)
	}
	g.timer.Stop()
	g.settle.Do(func() { close(g.settled) })
}

// Proven reports whether Prove was called.
func (g *Guest) Proven() bool { return g == nil || g.proven.Load() }

const (
	// lastWord is how long a stranger that was refused has to hear why, and to come up with something better; and how long one has
	// when the listener is closed.
	lastWord = 2 * time.Second
	// judgement is how long one has that has sent all that is read of a stranger.
	judgement = 5 * time.Second
	// mostTries is how many calls of one connection are judged before one is a proof, mostCalls how many of them may prove who makes
	// them by what they say.
	mostTries, mostCalls = 8, 2
)

// Fail says that the guest was refused. A stranger's connection ends soon after the first time.
func (g *Guest) Fail() {
	if g == nil || g.proven.Load() {
		return
	}
	if g.failed.Swap(true) {
		return
	}
	g.crowd.mu.Lock()
	defer g.crowd.mu.Unlock()
	if g.state == guestServed {
		g.due(lastWord)
	}
}

// Try reports whether a call of the guest is worth judging. A stranger that has made too many is to be refused without a look, and its
// connection ends.
func (g *Guest) Try() bool {
	if g == nil || g.proven.Load() || g.tries.Add(1) <= mostTries {
		return true
	}
	_ = g.Close()
	return false
}

// Call reports whether the guest may make a call that is read before it is proven who makes it.
func (g *Guest) Call() bool {
	return g == nil || g.proven.Load() || g.calls.Add(1) <= mostCalls
}

// Read implements net.Conn. Of a stranger it reads a few bytes at a time, and waits for the proof when it has read as many as it may.
func (g *Guest) Read(b []byte) (int, error) {
	if g.proven.Load() {
		return g.Conn.Read(b)
	}
	size, err := g.ration(len(b))
	if err != nil {
		return 0, err
	}
	n, err := g.Conn.Read(b[:size])
	g.left.Add(-int64(n))
	return n, err
}

// ration is how much of size may be read.
func (g *Guest) ration(size int) (int, error) {
	left := g.left.Load()
	if left > 0 {
		return min(size, int(left)), nil
	}
	return size, g.awaitProof()
}

// awaitProof waits until the guest is proven by what it sent, which takes milliseconds. When it is gone before, the error says so.
func (g *Guest) awaitProof() error {
	if !g.spent.Swap(true) {
		g.crowd.mu.Lock()
		if g.state == guestServed && !g.proven.Load() {
			g.due(judgement)
		}
		g.crowd.mu.Unlock()
	}
	<-g.settled
	if !g.proven.Load() {
		return net.ErrClosed
	}
	return nil
}

// Close implements net.Conn.
func (g *Guest) Close() error {
	err := g.Conn.Close()
	g.close.Do(func() {
		g.crowd.leave(g)
		g.timer.Stop()
		g.settle.Do(func() { close(g.settled) })
	})
	return err
}

// CloseWrite ends what is sent, so that a refusal arrives although more was sent than was read.
func (g *Guest) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NetConn is the connection underneath.
func (g *Guest) NetConn() net.Conn { return g.Conn }

// RemoteAddr implements net.Conn. GuestAt finds the guest by it, which is all that gRPC shows of a connection.
func (g *Guest) RemoteAddr() net.Addr { return guestAddr{g.Conn.RemoteAddr(), g} }

type guestAddr struct {
	net.Addr
	guest *Guest
}

// GuestAt returns the guest whose address a is, or is made of (Unwrap() net.Addr); nil when there is none.
func GuestAt(a net.Addr) *Guest {
	for {
		switch at := a.(type) {
		case guestAddr:
			return at.guest
		case interface{ Unwrap() net.Addr }:
			a = at.Unwrap()
		default:
			return nil
		}
	}
}

type guestKey struct{}

// withGuest has GuestOf find the guest.
func withGuest(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, GuestAt(conn.RemoteAddr()))
}

// GuestOf returns the guest that a request served by ServeHTTP came from; nil when there is none.
func GuestOf(ctx context.Context) *Guest {
	g, _ := ctx.Value(guestKey{}).(*Guest)
	return g
}
