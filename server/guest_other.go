//go:build !unix

package server

import "net"

// Readable returns conn. Without non-blocking reads, each idle connection holds a buffer.
func Readable(conn net.Conn) net.Conn { return conn }
