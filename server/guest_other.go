//go:build !unix

package server

import "net"

// Readable returns conn: where there is no reading without waiting, each idle connection holds a buffer.
func Readable(conn net.Conn) net.Conn { return conn }
