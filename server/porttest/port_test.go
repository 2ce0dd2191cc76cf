package porttest

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
)

// TestReservedPort checks that a reserved port accepts a listener and connections, also repeatedly, and is not returned
// again.
func TestReservedPort(t *testing.T) {
	port, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	if err := reserve(port); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("it was given again: %v", err)
	}
	for range 2 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		out, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		in, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []interface{ Close() error }{out, in, l} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := reserve(port); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("after use it was given again: %v", err)
		}
	}
	seen := map[int]bool{}
	for range 200 {
		p, err := Free()
		if err != nil || seen[p] || p == port {
			t.Fatalf("port %d, %v: given twice, or none", p, err)
		}
		seen[p] = true
	}
}
