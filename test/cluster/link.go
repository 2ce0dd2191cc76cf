package cluster

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Weather is what a Link does to the bytes that cross it, in each direction. The zero value passes all at once.
type Weather struct {
	// Cut ends every connection and refuses new ones.
	Cut bool
	// Frozen passes nothing on and tells nobody, as when packets are dropped without a reset: also the end of a connection
	// stays unknown to the other side.
	Frozen bool
	// FrozenUp and FrozenDown are Frozen in one direction: from who connects to the target, and from the target back.
	FrozenUp, FrozenDown bool
	// Delay is how much later everything arrives. It does not slow down what follows.
	Delay time.Duration
	// BytesPerSecond is the most that passes; zero for no limit. Little of what does not is taken from the sender.
	BytesPerSecond int
	// Largest is the size of the largest piece that passes, zero for any: a larger one is lost, and with it all behind it, as on a path that
	// drops what is too large for it and tells nobody.
	Largest int
	// Loss is the part of pieces, 0 to 1, that is held up for lossPause, and with it all behind it: how the loss of a packet
	// looks from above TCP.
	Loss float64
}

const (
	lossPause = 200 * time.Millisecond // the shortest after which TCP sends again
	pieceSize = 4 << 10
	// narrow is how much the system takes from the sender on behalf of a slow link, in bytes.
	narrow = 4 << 10
	// underWay bounds what a Link holds in one direction of one connection.
	underWay = 256
)

// Link is a TCP connection's way through a network whose weather a test controls.
type Link struct {
	listener net.Listener
	wait     sync.WaitGroup

	mu      sync.Mutex
	target  string            // guarded by mu
	weather Weather           // guarded by mu
	changed chan struct{}     // closed when the weather changes; guarded by mu
	open    map[net.Conn]bool // both ends of every connection; guarded by mu
	closed  bool              // guarded by mu
}

// NewLink listens on a loopback port and connects each connection to target, a host:port.
func NewLink(ctx context.Context, target string) (*Link, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{target: target, listener: listener, changed: make(chan struct{}), open: map[net.Conn]bool{}}
	l.wait.Go(l.accept)
	return l, nil
}

// Address is where it listens.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Set changes the weather, for open connections too.
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

// Lead ends every connection and leads new ones to another target.
func (l *Link) Lead(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
	l.closeAll()
}

// Close ends all connections and waits.
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

// closeAll needs mu.
func (l *Link) closeAll() {
	for c := range l.open {
		_ = c.Close()
	}
	clear(l.open)
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
	both.Go(func() { l.pass(far, near, func(w Weather) bool { return w.Frozen || w.FrozenUp }) })
	both.Go(func() { l.pass(near, far, func(w Weather) bool { return w.Frozen || w.FrozenDown }) })
	both.Wait()
}

// keep notes an open end, unless the link is cut.
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

// narrow lets the system take less from a sender when the link is slow, for as long as the connection lasts; it needs mu.
func (l *Link) narrow(c net.Conn) {
	if half, ok := c.(*net.TCPConn); ok && l.weather.BytesPerSecond > 0 && l.weather.BytesPerSecond < pieceSize {
		_ = half.SetReadBuffer(narrow) // it may have ended
	}
}

// pieceSize is how much is read at once: what passes in a fifth of a second.
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
}

// piece is some bytes that have been read, or how the reading ended.
type piece struct {
	bytes []byte
	read  time.Time
	err   error
}

// pass copies one direction until either end is closed, and tells the other end, when the weather lets it.
func (l *Link) pass(to, from net.Conn, frozen func(Weather) bool) {
	pieces := make(chan piece, underWay)
	gone := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			b := make([]byte, l.pieceSize())
			n, err := from.Read(b)
			select {
			case pieces <- piece{b[:n], time.Now(), err}:
			case <-gone:
				return
			}
			if err != nil {
				return
			}
		}
	})
	for {
		p := <-pieces
		l.travel(p, frozen)
		if len(p.bytes) > 0 {
			if _, err := to.Write(p.bytes); err != nil {
				break
			}
		}
		if p.err == nil {
			continue
		}
		if half, ok := to.(*net.TCPConn); ok && errors.Is(p.err, io.EOF) {
			_ = half.CloseWrite()
		} else {
			_ = to.Close()
		}
		break
	}
	close(gone)
	_ = from.Close()
	reader.Wait()
}

// travel returns when the weather lets a piece arrive.
func (l *Link) travel(p piece, frozen func(Weather) bool) {
	if w, _ := l.now(); w.Loss > 0 && rand.Float64() < w.Loss {
		l.pause(lossPause)
	}
	for {
		w, changed := l.now()
		if frozen(w) || w.Largest > 0 && len(p.bytes) > w.Largest {
			<-changed
			continue
		}
		if w.BytesPerSecond > 0 {
			l.pause(time.Duration(len(p.bytes)) * time.Second / time.Duration(w.BytesPerSecond))
		}
		l.pause(time.Until(p.read.Add(w.Delay)))
		return
	}
}

// pause waits, at most until the weather changes.
func (l *Link) pause(d time.Duration) {
	_, changed := l.now()
	select {
	case <-time.After(d):
	case <-changed:
	}
}

// now is the weather, and what is closed when it changes. A closed link passes all, so that its goroutines end.
func (l *Link) now() (Weather, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return Weather{}, l.changed
	}
	return l.weather, l.changed
}
