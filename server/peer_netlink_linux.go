package server

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
)

// The request for one TCP socket, as in the kernel's linux/sock_diag.h and linux/inet_diag.h.
const (
	netlinkSockDiag  = 4
	sockDiagByFamily = 20
	established      = 1

	netlinkHeader = 16
	diagRequest   = 8 + diagSocket
	diagSocket    = 48
	// diagUID and diagInode are offsets in a response.
	diagUID   = netlinkHeader + 4 + diagSocket + 12
	diagInode = diagUID + 4

	// netlinkTimeout bounds the wait, in seconds, for the kernel's immediate response.
	netlinkTimeout = 1
)

// askOwner asks the kernel for the user of the socket with the address local and the peer address remote: one request,
// whatever the number of sockets. errNoOwner reports that there is no such socket, or that its program has closed it
// and the kernel shows root's number.
func askOwner(local, remote netip.AddrPort) (uid int, err error) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, netlinkSockDiag)
	if err != nil {
		return 0, fmt.Errorf("ask the kernel: %w", err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO,
		&syscall.Timeval{Sec: netlinkTimeout}); err != nil {
		return 0, fmt.Errorf("ask the kernel: %w", err)
	}
	if err := syscall.Sendto(fd, ownerQuestion(local, remote), 0,
		&syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("ask the kernel: %w", err)
	}
	answer := make([]byte, 1024)
	n, from, err := syscall.Recvfrom(fd, answer, 0)
	if err != nil {
		return 0, fmt.Errorf("ask the kernel: %w", err)
	}
	if kernel, ok := from.(*syscall.SockaddrNetlink); !ok || kernel.Pid != 0 {
		return 0, fmt.Errorf("ask the kernel: the answer has another sender")
	}
	return ownerAnswer(answer[:n])
}

func ownerQuestion(local, remote netip.AddrPort) []byte {
	q := make([]byte, netlinkHeader+diagRequest)
	order := binary.NativeEndian
	order.PutUint32(q[0:], uint32(len(q)))
	order.PutUint16(q[4:], sockDiagByFamily)
	order.PutUint16(q[6:], syscall.NLM_F_REQUEST)
	body := q[netlinkHeader:]
	body[0], body[1] = syscall.AF_INET6, syscall.IPPROTO_TCP
	if local.Addr().Is4() {
		body[0] = syscall.AF_INET
	}
	order.PutUint32(body[4:], 1<<established)
	socket := body[8:]
	binary.BigEndian.PutUint16(socket[0:], local.Port())
	binary.BigEndian.PutUint16(socket[2:], remote.Port())
	copy(socket[4:], local.Addr().AsSlice())
	copy(socket[20:], remote.Addr().AsSlice())
	order.PutUint64(socket[40:], ^uint64(0)) // any socket: its cookie is unknown
	return q
}

// ownerAnswer returns the user of an established connection that a program holds.
func ownerAnswer(a []byte) (uid int, err error) {
	order := binary.NativeEndian
	if len(a) >= netlinkHeader+4 && order.Uint16(a[4:]) == syscall.NLMSG_ERROR {
		if errno := syscall.Errno(-int32(order.Uint32(a[netlinkHeader:]))); errno != syscall.ENOENT {
			return 0, fmt.Errorf("ask the kernel: %w", errno)
		}
		return 0, errNoDiag
	}
	if len(a) < diagInode+4 || order.Uint16(a[4:]) != sockDiagByFamily {
		return 0, fmt.Errorf("ask the kernel: an answer of %d bytes", len(a))
	}
	if a[netlinkHeader+1] != established || order.Uint32(a[diagInode:]) == 0 {
		return 0, errNoOwner
	}
	return int(order.Uint32(a[diagUID:])), nil
}

// errNoDiag reports that there is no such socket, or that the kernel lacks the module for TCP; its response is the same
// for both.
var errNoDiag = fmt.Errorf("ask the kernel: %w", syscall.ENOENT)
