package kds

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// thinLink forwards one connection at a time to target, with limited bytes a second from there and small buffers.
func thinLink(t *testing.T, target string, bytesPerSecond int) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { forwardThinly(t, near, target, bytesPerSecond) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wait.Wait() })
	return l.Addr().String()
}

func forwardThinly(t *testing.T, near net.Conn, target string, bytesPerSecond int) {
	// The buffer is small before the connection is: a window that was offered is not taken back, and what lies in it
	// counts as taken.
	small := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		return errors.Join(raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		}), err)
	}}
	far, err := small.DialContext(t.Context(), "tcp", target)
	if err != nil {
		t.Error(err)
		_ = near.Close()
		return
	}
	both := func() { _ = near.Close(); _ = far.Close() }
	var wait sync.WaitGroup
	wait.Go(func() { defer both(); _, _ = io.Copy(far, near) })
	wait.Go(func() {
		defer both()
		piece := make([]byte, max(1, bytesPerSecond/20))
		for pace := time.NewTicker(time.Second / 20); ; <-pace.C {
			n, err := far.Read(piece)
			if err != nil {
				pace.Stop()
				return
			}
			if _, err := near.Write(piece[:n]); err != nil {
				pace.Stop()
				return
			}
		}
	})
	wait.Wait()
}

// TestSlowIsNotGone checks promise 7: a peer that accepts waiting data keeps its session, however long a message takes.
func TestSlowIsNotGone(t *testing.T) {
	t.Parallel()
	const patience = 3 * time.Second // on a busy machine, a zone may take a while to answer what it has
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.SendTimeout, c.AnswerTimeout = patience, patience })
	s := store.NewMemory()
	startZone(t, "zone-1", thinLink(t, g.address, 20_000), s)
	small := func(i int) *resources.Resource {
		key, _ := permission("small")
		return written(t, globalHome, key, fmt.Sprintf(`{"default":{"allow":[{"sni":{"type":"Exact","value":"%d"}}]}}`, i))
	}
	put(t, g.store, small(1))
	eventually(t, "the first policy", func() bool { return count(s, resources.TypeMeshTrafficPermission) == 1 })
	noise := make([]byte, 96<<10) // which cannot be compressed
	random := rand.NewChaCha8([32]byte{})
	var large []*resources.Resource
	for i := range 2 {
		_, _ = random.Read(noise)
		key, _ := permission(fmt.Sprintf("big%d", i))
		large = append(large, written(t, globalHome, key, `{"default":{"allow":[{"sni":{"type":"Exact","value":"`+
			base64.RawURLEncoding.EncodeToString(noise)+`"}}]}}`))
	}
	begun := time.Now()
	put(t, g.store, large...)
	for i := 2; count(s, large[0].Type) <= len(large); i++ { // writes continue, so that late answers are noticed
		put(t, g.store, small(i))
		if time.Since(begun) > time.Minute {
			t.Fatal("the large policies do not arrive")
		}
		time.Sleep(50 * time.Millisecond) // the writer's pace
	}
	if took := time.Since(begun); took < 2*patience {
		t.Errorf("the link was not thin: %s", took)
	}
	if n := g.events.count(SessionEnded, ""); n != 0 {
		t.Errorf("%d sessions ended: %v", n, g.events.ends())
	}
}

// TestSilentPeerIsClosed checks that a connection on which nothing arrives and nothing is accepted is closed after
// three looks. One whose peer sends now and then, or accepts waiting data, is not.
func TestSilentPeerIsClosed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		peer func(far net.Conn)
		// looks is the time between two looks. On a busy machine, a peer that lives may be still for a while.
		looks  time.Duration
		closed bool
	}{
		"silent":            {func(net.Conn) {}, 200 * time.Millisecond, true},
		"sends":             {func(far net.Conn) { trickle(far.Write) }, time.Second, false},
		"sends, by counter": {func(far net.Conn) { trickle(far.Write) }, time.Second, false},
		"was heard once":    {func(far net.Conn) { _, _ = far.Write([]byte("hello")) }, 200 * time.Millisecond, true},
		"takes its share":   {func(far net.Conn) { trickle(far.Read) }, time.Second, false},
		"acknowledges all":  {func(far net.Conn) { _, _ = io.Copy(io.Discard, far) }, 200 * time.Millisecond, true},
	} {
		for by, watch := range map[string]func(*transport){
			"a timer":   func(under *transport) { under.watch(tt.looks) },
			"a lookout": (&lookout{interval: tt.looks}).watch,
		} {
			t.Run(name+", by "+by, func(t *testing.T) {
				t.Parallel()
				near, far := tcpPair(t)
				defer near.Close()
				defer far.Close()
				_ = far.SetReadBuffer(4 << 10)
				hung := make(chan struct{})
				under := newTransport(near)
				under.hangUp = func() { close(hung) }
				switch name {
				case "acknowledges all":
					_, _ = near.Write(make([]byte, 1<<10))
				case "sends":
					go func() { _, _ = io.Copy(io.Discard, near) }()
				case "sends, by counter", "was heard once":
					go func() { _, _ = io.Copy(io.Discard, closableConn{near, &pings{to: near}, under}) }()
				default:
					go func() { _, _ = near.Write(make([]byte, 64<<20)) }()
				}
				watch(under)
				go tt.peer(far)
				defer under.rest()
				wait := 2 * silentLooks * tt.looks
				if tt.closed {
					wait = time.Minute
				}
				select {
				case <-hung:
					if !tt.closed {
						t.Error("closed")
					}
				case <-time.After(wait):
					if tt.closed {
						t.Error("not closed")
					}
				}
			})
		}
	}
}

// TestLookoutEndsWithItsConnections checks that a lookout looks at each connection once in an interval, whenever it came,
// that it ends with the last one, and begins again with the next.
func TestLookoutEndsWithItsConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lookout{interval: lookInterval}
		armed := func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.armed }
		for range 2 {
			var all []*transport
			gone := make(chan time.Time, 100)
			for i := range 100 {
				near, far := net.Pipe() // of which the kernel knows nothing: only what is read counts
				defer near.Close()
				defer far.Close()
				under, came := newTransport(near), time.Now()
				under.hangUp = func() {
					if silent := time.Since(came); silent < silentLooks*lookInterval*9/10 || silent > silentLooks*lookInterval {
						t.Errorf("connection %d is closed after %s", i, silent)
					}
					gone <- time.Now()
				}
				l.watch(under)
				all = append(all, under)
				time.Sleep(37 * time.Millisecond)
			}
			for range all {
				<-gone
			}
			if !armed() {
				t.Error("it ended before its connections did")
			}
			for _, under := range all {
				under.rest()
				under.rest()
			}
			time.Sleep(lookInterval)
			if armed() || l.count != 0 {
				t.Errorf("it goes on, with %d connections", l.count)
			}
		}
	})
}

// TestLookoutLetsGo checks that a lookout keeps no connection that it has found gone, also one that was closed before it
// was watched, which gRPC closes only once.
func TestLookoutLetsGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lookout{interval: lookInterval}
		near, far := net.Pipe()
		defer far.Close()
		conn := closableConn{near, &pings{to: near}, newTransport(near)}
		_ = conn.Close()
		l.watch(conn.transport)
		time.Sleep((silentLooks + 2) * lookInterval)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.armed || l.count != 0 || len(l.turns[conn.transport.turn]) != 0 {
			t.Errorf("it goes on for %d closed connections: armed is %t", l.count, l.armed)
		}
	})
}

// trickle reads or writes 20,000 bytes twenty times a second, until that fails.
func trickle(do func([]byte) (int, error)) {
	pace := time.NewTicker(time.Second / 20)
	defer pace.Stop()
	for piece := make([]byte, 20_000); ; <-pace.C {
		if _, err := do(piece); err != nil {
			return
		}
	}
}

func tcpPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn)
}
