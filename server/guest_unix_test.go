//go:build unix

package server

import (
	"net"
	"testing"

	"google.golang.org/grpc/mem"
)

// oneBuffer is a pool of one buffer.
type oneBuffer struct{ buffer []byte }

func (p *oneBuffer) Get(int) *[]byte { return &p.buffer }
func (p *oneBuffer) Put(*[]byte)     {}

// TestReadingLeavesNoGarbage checks that a read allocates nothing: a global reads once for each answer of each zone.
func TestReadingLeavesNoGarbage(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Plaintext(limited(inner, defaultCrowd()))
	t.Cleanup(func() { _ = l.Close() })
	here, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = here.Close() })
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = there.Close() })
	GuestAt(there.RemoteAddr()).Prove()
	conn, ok := there.(interface {
		ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error)
	})
	if !ok {
		t.Fatalf("a %T holds memory while it waits", there)
	}
	pool, message := &oneBuffer{make([]byte, 1<<10)}, []byte("an answer")
	read := func() {
		if _, err := here.Write(message); err != nil {
			t.Fatal(err)
		}
		b, n, err := conn.ReadOnReady(1<<10, pool)
		if err != nil || string((*b)[:n]) != string(message) {
			t.Fatalf("read %d bytes: %v", n, err)
		}
	}
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("a read leaves %v objects of garbage, want none", n)
	}
}
