package server

import (
	"net"
	"sync"
	"testing"
	"time"
)

// TestHonestHerdsDoNotWaitForThePace checks that hundreds of connections of another address, each of which
// authenticates, take a fraction of the time of as many costly strangers, which are paced.
func TestHonestHerdsDoNotWaitForThePace(t *testing.T) {
	underneath, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limited(underneath, defaultCrowd())
	var all sync.WaitGroup
	defer all.Wait()
	defer func() { _ = l.Close() }()
	honest := net.IPv4(127, 0, 0, 2)
	const herd = 20 * pacedPerSecond
	proven := make(chan struct{}, herd)
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = conn.Close() }()
				if !conn.RemoteAddr().(guestAddr).Addr.(*net.TCPAddr).IP.Equal(honest) {
					return // which makes it costly
				}
				<-time.After(10 * time.Millisecond) // the time of a proof
				GuestAt(conn.RemoteAddr()).Prove()
				proven <- struct{}{}
			})
		}
	})
	come := func(from net.IP) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
		conn, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	for range 10 * pacedPerSecond {
		come(net.IPv4(127, 0, 0, 3))
	}
	c := l.(*crowd)
	costly := func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.costly && c.waiting > 0 }
	for end := time.Now().Add(20 * time.Second); !costly(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("strangers that come and go cost nothing")
		}
	}
	begin := time.Now()
	for range herd {
		all.Go(func() { come(honest) })
	}
	for range herd {
		select {
		case <-proven:
		case <-time.After(20 * time.Second):
			t.Fatal("the herd is not served")
		}
	}
	if took, paced := time.Since(begin), herd*time.Second/pacedPerSecond; took > paced/2 {
		t.Errorf("%d honest connections took %s: strangers take %s", herd, took, paced)
	}
}
