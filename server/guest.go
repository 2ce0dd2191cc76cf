package server

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Guest is a connection accepted by Listen. Until Prove is called it is a stranger: the server reads few bytes from it,
// gives it little time, and has few places for such connections. A nil Guest has no limits.
type Guest struct {
	net.Conn
	crowd  *crowd
	peer   *peer
	counts bool // towards total, perAddress and the rate

	proven atomic.Bool
	// left and frames are how many more bytes and frames the server reads from a stranger. tries and calls count its
	// attempts, and failed means that one was refused.
	left, frames atomic.Int64
	tries, calls atomic.Int32
	failed       atomic.Bool
	// spent means that the server has read everything that it reads from a stranger.
	spent atomic.Bool
	// settled is closed when the guest is proven or gone.
	settled chan struct{}
	settle  sync.Once
	close   sync.Once
	timer   *time.Timer

	state guestState // guarded by crowd.mu
	since time.Time  // guarded by crowd.mu: when reading from it began
	paced bool       // guarded by crowd.mu: it began by the pace
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

// slowLink is the number of bytes that earn a stranger another second: half of what 4 kbit/s carry, since the server
// sends in the other half of the time.
const slowLink = 250

// due closes g after d unless it is proven, or slow. crowd.mu is held.
func (g *Guest) due(d time.Duration) {
	if g.timer == nil {
		g.timer = time.AfterFunc(d, g.overdue)
		return
	}
	g.timer.Reset(d)
}

// overdue closes g, unless it is proven by now or its bytes have earned more time.
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

// more returns how much time g has left, which grows with the bytes that it has sent. crowd.mu is held.
func (g *Guest) more(now time.Time) time.Duration {
	limits := &g.crowd.limits
	if g.state != guestServed || g.failed.Load() || g.spent.Load() || g.crowd.err != nil {
		return 0
	}
	sent := time.Duration(int64(limits.bytes) - g.left.Load())
	return min(limits.proof+sent*time.Second/slowLink, limits.slowest) - now.Sub(g.since)
}

// Prove marks the connection's caller as authenticated. It is quick, and may be called again.
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
	// lastWord is how long a refused stranger may stay to read the reason and to present something better, and how long
	// any stranger may stay when the listener closes.
	lastWord = 2 * time.Second
	// judgement is how long a stranger may stay once the server has read everything that it reads from one.
	judgement = 5 * time.Second
	// mostTries limits the calls on one connection that are judged before one authenticates. mostCalls limits those
	// that may authenticate by their content.
	mostTries, mostCalls = 8, 2
)

// Fail records that the guest was refused. A stranger's connection ends soon after the first refusal.
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

// Try reports whether to judge a call of the guest. The server refuses a stranger with too many calls without judging
// them, and ends its connection.
func (g *Guest) Try() bool {
	if g == nil || g.proven.Load() || g.tries.Add(1) <= mostTries {
		return true
	}
	_ = g.Close()
	return false
}

// Tried reports whether the server judges no more calls of the guest, so that its response to this one should be the
// last.
func (g *Guest) Tried() bool { return g != nil && !g.proven.Load() && g.tries.Load() >= mostTries }

// Call reports whether the guest may make a call that is read before its caller is authenticated.
func (g *Guest) Call() bool {
	return g == nil || g.proven.Load() || g.calls.Add(1) <= mostCalls
}

// Read implements net.Conn. From a stranger, it reads a few bytes at a time, and waits for the proof at the limit.
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

// ration returns how many of size bytes may be read.
func (g *Guest) ration(size int) (int, error) {
	left := g.left.Load()
	if left > 0 {
		return min(size, int(left)), nil
	}
	return size, g.awaitProof()
}

// awaitProof waits until what the guest sent proves it, which takes milliseconds. It returns an error if the guest
// leaves before that.
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

// Write implements net.Conn.
func (g *Guest) Write(b []byte) (int, error) {
	if held := g.crowd.fence.Load(); held != nil {
		if err := (*held)(); err != nil {
			_ = g.Close()
			return 0, err
		}
	}
	return g.Conn.Write(b)
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

// CloseWrite ends sending, so that a refusal arrives although not everything was read.
func (g *Guest) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NetConn returns the underlying connection.
func (g *Guest) NetConn() net.Conn { return g.Conn }

// RemoteAddr implements net.Conn. GuestAt finds the guest by it, because gRPC exposes nothing else of a connection.
func (g *Guest) RemoteAddr() net.Addr { return guestAddr{g.Conn.RemoteAddr(), g} }

type guestAddr struct {
	net.Addr
	guest *Guest
}

// GuestAt returns the guest of an address a, or of the address that a wraps (Unwrap() net.Addr), or nil.
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

// withGuest makes GuestOf find the guest.
func withGuest(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, GuestAt(conn.RemoteAddr()))
}

// GuestOf returns the guest that sent a request served by ServeHTTP, or nil.
func GuestOf(ctx context.Context) *Guest {
	g, _ := ctx.Value(guestKey{}).(*Guest)
	return g
}
