//go:build unix

package kds

import (
	"cmp"
	"errors"
	"io"
	"net"
	"syscall"

	"google.golang.org/grpc/mem"
)

// readable gives a TCP connection back what gRPC does with a bare one only.
func readable(c closableConn) net.Conn {
	tcp, ok := c.Conn.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	return readableConn{c, raw}
}

// readableConn holds no memory while it waits for the peer.
type readableConn struct {
	closableConn
	raw syscall.RawConn
}

// ReadOnReady takes a buffer from the pool once there is something to read, and returns it with how much that was; gRPC
// puts it back. By Read, each idle connection would hold a buffer of 32 KiB.
func (c readableConn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	var buffer *[]byte
	var n int
	var failed error
	err := c.raw.Read(func(fd uintptr) bool {
		buffer = pool.Get(size)
		for n, failed = syscall.Read(int(fd), *buffer); errors.Is(failed, syscall.EINTR); {
			n, failed = syscall.Read(int(fd), *buffer)
		}
		if failed != nil {
			pool.Put(buffer)
			buffer = nil
		}
		return !errors.Is(failed, syscall.EAGAIN)
	})
	if err = cmp.Or(err, failed); err == nil && n > 0 {
		return buffer, n, nil
	}
	if buffer != nil {
		pool.Put(buffer)
	}
	return nil, 0, cmp.Or(err, io.EOF)
}
