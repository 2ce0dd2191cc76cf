package server

import (
	"net"
	"testing"
	"time"
)

// TestWhoComesLastIsServedFirst checks that a new connection gets the next free place, ahead of a queue of strangers
// from its address. First come, first served would make it wait for the full time of all of them, longer than clients
// wait.
func TestWhoComesLastIsServedFirst(t *testing.T) {
	underneath, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limits := defaultCrowd()
	limits.served, limits.servedPerAddress = 1, 1
	l := limited(underneath, limits)
	defer func() { _ = l.Close() }()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	dial()
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	const strangers = 20
	for range strangers {
		dial()
	}
	honest := dial()
	c := l.(*crowd)
	waiting := func() int { c.mu.Lock(); defer c.mu.Unlock(); return c.waiting }
	for end := time.Now().Add(10 * time.Second); waiting() < strangers+1 && time.Now().Before(end); {
		<-time.After(time.Millisecond)
	}
	next, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := next.RemoteAddr().String(), honest.LocalAddr().String(); got != want {
		t.Errorf("%s was served after %d strangers came, want %s, who came last", got, strangers, want)
	}
}
