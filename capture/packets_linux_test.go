package capture_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Flags of a TCP segment.
const (
	fin, syn, rst, ack = 1, 2, 4, 16
)

// raw sends packets of its own making from one port of the client to one port of the server.
type raw struct {
	t      *testing.T
	client *machine
	fd     int
	port   uint16
}

func newRaw(t *testing.T, client *machine, port uint16) *raw {
	t.Helper()
	r := &raw{t: t, client: client, port: port}
	client.do(func() {
		must := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		var err error
		r.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP)
		must(err)
		must(unix.SetsockoptInt(r.fd, unix.IPPROTO_IP, unix.IP_HDRINCL, 1))
		must(unix.SetsockoptTimeval(r.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}))
	})
	t.Cleanup(func() { _ = unix.Close(r.fd) })
	return r
}

func sum(parts ...[]byte) uint16 {
	total := uint32(0)
	for _, p := range parts {
		for i := 0; i+1 < len(p); i += 2 {
			total += uint32(binary.BigEndian.Uint16(p[i:]))
		}
	}
	for total > 0xffff {
		total = total&0xffff + total>>16
	}
	return ^uint16(total)
}

// send sends one segment with the flags, in fragments of the given bytes; 0 is whole.
func (r *raw) send(flags byte, fragment int) {
	r.t.Helper()
	from, to := netip.MustParseAddr(client4).As4(), netip.MustParseAddr(server4).As4()
	segment := make([]byte, 20)
	binary.BigEndian.PutUint16(segment, r.port)
	binary.BigEndian.PutUint16(segment[2:], 8080)
	binary.BigEndian.PutUint32(segment[4:], 1000)
	segment[12], segment[13] = 5<<4, flags
	binary.BigEndian.PutUint16(segment[14:], 65000)
	pseudo := append(append(from[:], to[:]...), 0, unix.IPPROTO_TCP, 0, 20)
	binary.BigEndian.PutUint16(segment[16:], sum(pseudo, segment))
	if fragment == 0 {
		fragment = len(segment)
	}
	r.client.do(func() {
		for at := 0; at < len(segment); at += fragment {
			end := min(at+fragment, len(segment))
			header := make([]byte, 20)
			header[0], header[8], header[9] = 0x45, 64, unix.IPPROTO_TCP
			binary.BigEndian.PutUint16(header[4:], 77)
			offset := uint16(at / 8)
			if end < len(segment) {
				offset |= 0x2000 // more fragments
			}
			binary.BigEndian.PutUint16(header[6:], offset)
			copy(header[12:], from[:])
			copy(header[16:], to[:])
			if err := unix.Sendto(r.fd, append(header, segment[at:end]...), 0, &unix.SockaddrInet4{Addr: to}); err != nil {
				r.t.Error(err)
			}
		}
	})
}

// answer returns the flags of what the server's port 8080 says within a time; 0 without an answer.
func (r *raw) answer(within time.Duration) (flags byte) {
	r.client.do(func() {
		packet := make([]byte, 100)
		for end := time.Now().Add(within); time.Now().Before(end); {
			n, _, err := unix.Recvfrom(r.fd, packet, 0)
			if err == nil && n >= 40 && binary.BigEndian.Uint16(packet[20:]) == 8080 &&
				binary.BigEndian.Uint16(packet[22:]) == r.port {
				flags = packet[33]
				return
			}
		}
	})
	return flags
}

// TestPackets: no sequence of packets opens a connection to the application. There is no proxy, so that whoever
// answers a SYN with a SYN is the application.
func TestPackets(t *testing.T) {
	t.Parallel()
	server, client := newPair(t)
	if server == nil {
		return
	}
	server.serve(applicationUser, ":8080", func(net.Conn) string { return "application" })
	before := newRaw(t, client, 4000)
	if before.send(syn, 8); before.answer(30*time.Second) != syn|ack {
		t.Fatal("fragments do not arrive without capture either: the test shows nothing")
	}
	server.install(both)
	for at, first := range []byte{0, ack, ack | fin, rst, syn | ack, fin, syn | fin, syn | rst} {
		for _, fragment := range []int{0, 8} {
			r := newRaw(t, client, uint16(5000+10*at+fragment))
			if first != 0 {
				r.send(first, fragment)
				if first != rst && first != syn|rst {
					r.answer(time.Second)
				}
			}
			r.send(syn, fragment)
			if got := r.answer(time.Second); got&syn != 0 {
				t.Errorf("flags %#x, then a SYN, in fragments of %d bytes: the application answers", first, fragment)
			}
		}
	}
}
