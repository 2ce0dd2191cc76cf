package server

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// dialed opens a connection and reports whether it stays open.
func dialed(t *testing.T, l net.Listener) (conn net.Conn, stays bool) {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Read(make([]byte, 1))
	return conn, n == 1 && err == nil
}

// greeting accepts connections and sends each a byte, until l is closed.
func greeting(t *testing.T, c crowdLimits) net.Listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if c.served == 0 {
		c.strangerLimits = defaultCrowd().strangerLimits
	}
	l := limited(inner, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("x"))
			defer conn.Close()
			go func() { // until the other side closes
				_, _ = conn.Read(make([]byte, 1))
				_ = conn.Close()
			}()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l
}

func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	l := greeting(t, crowdLimits{perAddress: 2, total: 100, perSecond: 1000, burst: 1000, loopback: true})
	first, ok := dialed(t, l)
	if _, second := dialed(t, l); !ok || !second {
		t.Fatal("what the limits allow was refused")
	}
	if _, third := dialed(t, l); third {
		t.Error("a third connection of one address is served")
	}
	_ = first.Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, again := dialed(t, l); again {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no connection after one was closed")
		}
	}
}

func TestNewConnectionsAreBounded(t *testing.T) {
	l := greeting(t, crowdLimits{perAddress: 100, total: 100, perSecond: 0.0001, burst: 3, loopback: true})
	for i := range 5 {
		if _, ok := dialed(t, l); ok != (i < 3) {
			t.Errorf("connection %d: served %t", i+1, ok)
		}
	}
}

func TestAllConnectionsAreBounded(t *testing.T) {
	l := greeting(t, crowdLimits{perAddress: 100, total: 1, perSecond: 1000, burst: 1000, loopback: true})
	if _, ok := dialed(t, l); !ok {
		t.Fatal("the first is refused")
	}
	if _, ok := dialed(t, l); ok {
		t.Error("a second is served")
	}
}

// TestWhoHasMostMakesRoom checks that when two addresses fill all places, others still get one each, at the cost of
// those two.
func TestWhoHasMostMakesRoom(t *testing.T) {
	limits := defaultCrowd()
	limits.perAddress, limits.total, limits.yields = 4, 6, true
	c := limited(nil, limits).(*crowd)
	come := func(address string) net.Conn {
		near, far := net.Pipe()
		t.Cleanup(func() { _, _ = near.Close(), far.Close() })
		c.arrive(addressed{far, &net.TCPAddr{IP: net.ParseIP(address)}}, time.Now())
		return near
	}
	for range 10 {
		come("10.0.0.1")
	}
	for range 10 {
		come("10.0.0.2")
	}
	probe := come("10.0.0.3")
	come("10.0.0.2")
	c.mu.Lock()
	one, two, three, open := c.addresses["10.0.0.1"].open, c.addresses["10.0.0.2"].open,
		c.addresses["10.0.0.3"].open, c.open
	c.mu.Unlock()
	if three != 1 || one+two != 5 || open != 6 {
		t.Errorf("they have %d, %d and %d of %d places", one, two, three, open)
	}
	if err := probe.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := probe.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection of the third was closed: %v", err)
	}
}

// TestStrangersDoNotOutliveTheListener checks that a connection that is being read, and has used up its bytes, ends
// soon after the listener.
func TestStrangersDoNotOutliveTheListener(t *testing.T) {
	limits := defaultCrowd()
	limits.proof, limits.bytes = time.Minute, 1
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limited(inner, limits)
	conn, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("xx")); err != nil {
		t.Fatal(err)
	}
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, served)
	}()
	_ = l.Close()
	if err := conn.SetReadDeadline(time.Now().Add(5 * lastWord)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it stays: %v", err)
		_ = served.Close()
	}
	<-read
}

// addressed is a connection with a remote address.
type addressed struct {
	net.Conn
	from net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.from }

func TestThisMachineIsNotLimited(t *testing.T) {
	l := greeting(t, crowdLimits{})
	if _, ok := dialed(t, l); !ok {
		t.Error("a connection over loopback is refused")
	}
}

func TestAddressesAreForgotten(t *testing.T) {
	c := limited(nil, crowdLimits{perAddress: 1, total: 10, perSecond: 1, burst: 1}).(*crowd)
	for i := range 3 * idleAddresses {
		address := net.IPv4(10, byte(i>>16), byte(i>>8), byte(i)).String()
		if p, ok := c.enter(address, true, time.Now()); ok {
			c.leave(newGuest(nil, c, p, true))
		}
	}
	if n := len(c.addresses); n > idleAddresses+10 {
		t.Errorf("%d addresses are remembered", n)
	}
	for address, want := range map[string]string{"[2001:db8::1]:1": "2001:db8::", "10.0.0.1:1": "10.0.0.1",
		"[::1]:1": "", "127.9.9.9:1": ""} {
		a, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got, counts := networkOf(a); counts != (want != "") || counts && got != want {
			t.Errorf("%s counts as %q, %t, want %q", address, got, counts, want)
		}
	}
}

// TestSlowStrangersHaveTime checks that a slow sender gets more time than a nearly silent one, within limits, and a
// refused one gets none.
func TestSlowStrangersHaveTime(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		sent   int
		state  guestState
		failed bool
		want   time.Duration
	}{
		"silent":        {0, guestServed, false, 0},
		"a byte each s": {10, guestServed, false, 40 * time.Millisecond},
		"4 kbit/s":      {2500, guestServed, false, 10 * time.Second},
		"all":           {64 << 10, guestServed, false, 50 * time.Second},
		"refused":       {2500, guestServed, true, 0},
		"not served":    {2500, guestWaiting, false, 0},
	} {
		c := &crowd{limits: defaultCrowd()}
		g := newGuest(nil, c, &peer{}, true)
		g.state, g.since = tt.state, now.Add(-c.limits.proof)
		g.left.Add(-int64(tt.sent))
		g.failed.Store(tt.failed)
		if got := g.more(now); got != tt.want {
			t.Errorf("%s: %s more, want %s", name, got, tt.want)
		}
	}
}
