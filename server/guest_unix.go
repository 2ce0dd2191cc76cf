//go:build unix

package server

import (
	"cmp"
	"errors"
	"io"
	"net"
	"syscall"

	"google.golang.org/grpc/mem"
)

// Readable returns a connection that reads as conn does and, where conn is a Guest's of TCP, gives it back what gRPC does
// with a bare one only: it holds no memory while it waits for the peer. conn must do nothing but pass on what it reads.
func Readable(conn net.Conn) net.Conn {
	guest := GuestAt(conn.RemoteAddr())
	if guest == nil {
		return conn
	}
	tcp, ok := guest.Conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	return readableConn{conn, guest, raw}
}

type readableConn struct {
	net.Conn
	guest *Guest
	raw   syscall.RawConn
}

// ReadOnReady takes a buffer from the pool once there is something to read, and returns it with how much that was; gRPC
// puts it back. By Read, each idle connection would hold a buffer of 32 KiB. Strangers are read as Read does.
func (c readableConn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	if !c.guest.proven.Load() {
		return c.readStranger(size, pool)
	}
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

func (c readableConn) readStranger(size int, pool mem.BufferPool) (*[]byte, int, error) {
	buffer := pool.Get(size)
	n, err := c.Read(*buffer)
	if n == 0 {
		pool.Put(buffer)
		return nil, 0, cmp.Or(err, io.EOF)
	}
	return buffer, n, err
}
