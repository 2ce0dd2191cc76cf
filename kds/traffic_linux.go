package kds

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// pingTimeout is how long gRPC waits for the answer to a ping: transport.watch notices a peer that is gone.
const pingTimeout = longestBacklog

// trafficOf reads the kernel's TCP statistics; ok is false if there are none.
func trafficOf(conn net.Conn) (p traffic, ok bool) {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return p, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return p, false
	}
	var info *unix.TCPInfo
	if raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }) != nil || err != nil {
		return p, false
	}
	return traffic{came: info.Bytes_received, took: info.Bytes_acked, waits: info.Unacked > 0 ||
		info.Notsent_bytes > 0}, true
}
