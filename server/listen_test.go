package server_test

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/server"
)

// TestAcceptedConnectionsAreNotProbed: with 2,000 proxies, TCP keepalives come in bursts, and loopback was seen to drop
// some; gRPC's TCP_USER_TIMEOUT then ends a healthy connection.
func TestAcceptedConnectionsAreNotProbed(t *testing.T) {
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	raw, err := c.(*server.Guest).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var on int
	err = raw.Control(func(fd uintptr) {
		on, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
	})
	if err != nil || on != 0 {
		t.Errorf("SO_KEEPALIVE %d, %v", on, err)
	}
}
