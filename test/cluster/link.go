package cluster

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Weather is what a Link does to the bytes that cross it, in each direction. The zero value passes everything at once.
type Weather struct {
	// Cut ends every connection and refuses new ones.
	Cut bool
	// Frozen passes nothing on and reports nothing, as when packets are dropped without a reset. The other side does
	// not even learn that a connection has ended.
	Frozen bool
	// FrozenUp and FrozenDown are Frozen in one direction: to the target, and from the target.
	FrozenUp, FrozenDown bool
	// Delay is how much later everything arrives. It does not reduce the throughput.
	Delay time.Duration
	// BytesPerSecond limits the throughput; zero for no limit. Little of the excess is accepted from the sender.
	BytesPerSecond int
	// Largest is the size of the largest piece that passes; zero for any. A larger piece is lost together with
	// everything behind it, as on a path that silently drops large packets.
	Largest int
	// Loss is the share of pieces, 0 to 1, that is held up for lossPause together with everything behind it. That is
	// how the loss of a packet appears above TCP.
	Loss float64
}

const (
	lossPause = 200 * time.Millisecond // the shortest time after which TCP sends again
	pieceSize = 4 << 10
	// narrow is how much the system buffers from the sender for a slow link, in bytes.
	narrow = 4 << 10
	// underWay limits the pieces that a Link holds in one direction of one connection.
	underWay = 256
)

// Link forwards TCP connections through a network whose weather a test controls.
type Link struct {
	listener net.Listener
	wait     sync.WaitGroup

	mu      sync.Mutex
	target  string            // guarded by mu
	weather Weather           // guarded by mu
	changed chan struct{}     // closed when the weather changes; guarded by mu
	open    map[net.Conn]bool // both ends of every connection; guarded by mu
	silent  map[net.Conn]bool // those of open that nothing passes any more; guarded by mu
	ended   chan struct{}     // closed when the open connections are closed; guarded by mu
	closed  bool              // guarded by mu

	up, down atomic.Int64
}

// NewLink listens on a loopback port and connects each connection to target, a host:port.
func NewLink(ctx context.Context, target string) (*Link, error) {
	return NewLinkAt(ctx, "127.0.0.1:0", target)
}

// NewLinkAt is NewLink at an address of this machine.
func NewLinkAt(ctx context.Context, address, target string) (*Link, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := &Link{target: target, listener: listener, changed: make(chan struct{}), open: map[net.Conn]bool{},
		silent: map[net.Conn]bool{}, ended: make(chan struct{})}
	l.wait.Go(l.accept)
	return l, nil
}

// Passed returns how many bytes have passed on all connections, to the target and from it.
func (l *Link) Passed() (up, down int64) { return l.up.Load(), l.down.Load() }

// Address returns the address that the link listens on.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Set changes the weather, also for open connections.
func (l *Link) Set(w Weather) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.weather = w
	for c := range l.open {
		l.narrow(c)
	}
	close(l.changed)
	l.changed = make(chan struct{})
	if w.Cut {
		l.closeAll()
	}
}

// Lead ends every connection and forwards new ones to another target.
func (l *Link) Lead(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
	l.closeAll()
}

// Forget drops everything on the connections that are open, for good, as a translator of addresses does that lost its
// table: neither side learns of it. New connections are as the weather says.
func (l *Link) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		l.silent[c] = true
	}
}

// Reset ends every connection by a reset, like a router that has forgotten them and says so, and sets the weather.
func (l *Link) Reset(w Weather) {
	l.mu.Lock()
	for c := range l.open {
		if end, ok := c.(*net.TCPConn); ok {
			_ = end.SetLinger(0) // it may have ended
		}
	}
	l.closeAll()
	l.mu.Unlock()
	l.Set(w)
}

// Close ends all connections and waits for that.
func (l *Link) Close() error {
	l.mu.Lock()
	l.closed = true
	l.closeAll()
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	err := l.listener.Close()
	l.wait.Wait()
	return err
}

// closeAll closes all connections. The caller holds mu.
func (l *Link) closeAll() {
	for c := range l.open {
		_ = c.Close()
	}
	clear(l.open)
	clear(l.silent)
	close(l.ended)
	l.ended = make(chan struct{})
}

// forgotten returns a channel that closes when the link closes a connection that was forgotten; nil for other ones.
func (l *Link) forgotten(c net.Conn) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent[c] {
		return l.ended
	}
	return nil
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.wait.Go(func() { l.connect(near) })
	}
}

func (l *Link) connect(near net.Conn) {
	defer near.Close()
	if !l.keep(near) {
		return
	}
	defer l.forget(near)
	l.mu.Lock()
	target := l.target
	l.mu.Unlock()
	far, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer far.Close()
	if !l.keep(far) {
		return
	}
	defer l.forget(far)
	var both sync.WaitGroup
	both.Go(func() { l.pass(far, near, &l.up, func(w Weather) bool { return w.Frozen || w.FrozenUp }) })
	both.Go(func() { l.pass(near, far, &l.down, func(w Weather) bool { return w.Frozen || w.FrozenDown }) })
	both.Wait()
}

// keep registers an open end, unless the link is cut.
func (l *Link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.weather.Cut || l.closed {
		return false
	}
	l.open[c] = true
	l.narrow(c)
	return true
}

// narrow makes the system buffer less from a sender if the link is slow, for the life of the connection. The caller
// holds mu.
func (l *Link) narrow(c net.Conn) {
	if half, ok := c.(*net.TCPConn); ok && l.weather.BytesPerSecond > 0 && l.weather.BytesPerSecond < pieceSize {
		_ = half.SetReadBuffer(narrow) // the connection may have ended
	}
}

// pieceSize is the size of one read: what passes in a fifth of a second.
func (l *Link) pieceSize() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.weather.BytesPerSecond == 0 {
		return pieceSize
	}
	return max(1, min(pieceSize, l.weather.BytesPerSecond/5))
}

func (l *Link) forget(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	delete(l.silent, c)
}
