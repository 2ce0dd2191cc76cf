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

// Readable returns a connection that reads like conn. If conn is a Guest's over TCP, it restores what gRPC does only
// with a bare one: it holds no memory while it waits for the peer. conn must do nothing but pass on what it reads.
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
	c := &readableConn{Conn: conn, guest: guest, raw: raw}
	c.try = c.read
	return c
}

// readableConn expects one reading goroutine at a time, as in gRPC.
type readableConn struct {
	net.Conn
	guest *Guest
	raw   syscall.RawConn
	// try is the method that reads, and read its arguments and results. They are kept, because values created for each
	// read would become garbage.
	try    func(fd uintptr) bool
	size   int
	pool   mem.BufferPool
	buffer *[]byte
	n      int
	failed error
}

// ReadOnReady takes a buffer from the pool once there is data, and returns it with the number of bytes read; gRPC puts
// it back. With Read, each idle connection would hold a buffer of 32 KiB. Strangers are read as by Read.
func (c *readableConn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	if !c.guest.proven.Load() {
		return c.readStranger(size, pool)
	}
	c.size, c.pool = size, pool
	err := c.raw.Read(c.try)
	buffer, n, failed := c.buffer, c.n, c.failed
	c.pool, c.buffer, c.n, c.failed = nil, nil, 0, nil
	if err = cmp.Or(err, failed); err == nil && n > 0 {
		return buffer, n, nil
	}
	if buffer != nil {
		pool.Put(buffer)
	}
	return nil, 0, cmp.Or(err, io.EOF)
}

// read tries to read, and returns false if there is no data yet.
func (c *readableConn) read(fd uintptr) bool {
	c.buffer = c.pool.Get(c.size)
	for c.n, c.failed = syscall.Read(int(fd), *c.buffer); errors.Is(c.failed, syscall.EINTR); {
		c.n, c.failed = syscall.Read(int(fd), *c.buffer)
	}
	if c.failed != nil {
		c.pool.Put(c.buffer)
		c.buffer = nil
	}
	return !errors.Is(c.failed, syscall.EAGAIN)
}

func (c *readableConn) readStranger(size int, pool mem.BufferPool) (*[]byte, int, error) {
	buffer := pool.Get(size)
	n, err := c.Read(*buffer)
	if n == 0 {
		pool.Put(buffer)
		return nil, 0, cmp.Or(err, io.EOF)
	}
	return buffer, n, err
}
