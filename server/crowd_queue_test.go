package server

import (
	"net"
	"testing"
	"time"
)

// TestPlacesRestWhileStrangersComeAndGo checks that an address that opens and closes connections is served at a limited
// pace, however many it can open.
func TestPlacesRestWhileStrangersComeAndGo(t *testing.T) {
	underneath, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limits := defaultCrowd()
	limits.served, limits.servedPerAddress = 20, 20
	l := limited(underneath, limits)
	defer func() { _ = l.Close() }()
	served := make(chan net.Conn)
	go func() {
		defer close(served)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served <- conn
		}
	}()
	begin := time.Now()
	const strangers = 20 + costlyLosses + pacedAtOnce + 2*pacedPerSecond // those that are served before they cost much, and two seconds'
	for range strangers {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	for range strangers {
		_ = (<-served).Close()
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("%d strangers were served in %s", strangers, took)
	}
	go func() { // a later one is served as usual
		if conn, err := net.Dial("tcp", l.Addr().String()); err == nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	guest := <-served
	GuestAt(guest.RemoteAddr()).Prove()
	_ = guest.Close()
}
