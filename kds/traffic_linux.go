package kds

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pingTimeout is how long gRPC waits for the answer to a ping: transport.watch notices a peer that is gone.
const pingTimeout = longestBacklog

// trafficOf reads the kernel's TCP statistics; ok is false if there are none.
func trafficOf(conn net.Conn) (p traffic, ok bool) {
	info := statistics(conn)
	if info == nil {
		return p, false
	}
	return traffic{came: info.Bytes_received, took: info.Bytes_acked, waits: info.Unacked > 0 ||
		info.Notsent_bytes > 0}, true
}

// quietFor returns how long ago the last bytes arrived; ok is false if that is unknown.
func quietFor(conn net.Conn) (d time.Duration, ok bool) {
	info := statistics(conn)
	if info == nil {
		return 0, false
	}
	return time.Duration(info.Last_data_recv) * time.Millisecond, true
}

// statistics returns the kernel's TCP statistics; nil if there are none.
func statistics(conn net.Conn) *unix.TCPInfo {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	var info *unix.TCPInfo
	if raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }) != nil || err != nil {
		return nil
	}
	return info
}
