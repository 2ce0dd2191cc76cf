package capture_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/capture"
)

// Headers that IPv6 may have before the transport's.
const (
	hopByHop, fragmented, options = 0, 44, 60
)

const pieceOfIPv6 = 24

// raw6 sends packets of IPv6 of its own making from a port of the client to port 8080 of the server.
type raw6 struct {
	t         *testing.T
	client    *machine
	out, in   int
	transport byte
	port      uint16
}

func newRaw6(t *testing.T, client *machine, transport byte, port uint16) *raw6 {
	t.Helper()
	r := &raw6{t: t, client: client, transport: transport, port: port}
	client.do(func() {
		var err error
		if r.out, err = unix.Socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW); err != nil {
			t.Error(err)
		}
		if r.in, err = unix.Socket(unix.AF_INET6, unix.SOCK_RAW, int(transport)); err != nil {
			t.Error(err)
		}
		if err := unix.SetsockoptTimeval(r.in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { _ = unix.Close(r.out); _ = unix.Close(r.in) })
	return r
}

// payload returns a SYN, or a datagram.
func (r *raw6) payload(from, to [16]byte) []byte {
	segment := bytes.Repeat([]byte{1}, 40) // options that say nothing
	clear(segment[:20])
	at := 16
	if r.transport == unix.IPPROTO_UDP {
		segment, at = append(make([]byte, 8), "hello, server, are you there, too?"...), 6
		binary.BigEndian.PutUint16(segment[4:], uint16(len(segment)))
	} else {
		binary.BigEndian.PutUint32(segment[4:], 1000)
		segment[12], segment[13] = 10<<4, syn
		binary.BigEndian.PutUint16(segment[14:], 65000)
	}
	binary.BigEndian.PutUint16(segment, r.port)
	binary.BigEndian.PutUint16(segment[2:], 8080)
	pseudo := append(append(from[:], to[:]...), 0, 0, 0, byte(len(segment)), 0, 0, 0, r.transport)
	binary.BigEndian.PutUint16(segment[at:], sum(pseudo, segment))
	return segment
}

// send sends one packet behind extension headers; with a fragment header as the last, in pieces of 24 bytes:
// the kernel takes no first one without the whole header.
func (r *raw6) send(headers ...byte) {
	r.t.Helper()
	from, to := netip.MustParseAddr(client6).As16(), netip.MustParseAddr(server6).As16()
	segment := r.payload(from, to)
	pieces := 1
	if len(headers) > 0 && headers[len(headers)-1] == fragmented {
		pieces = (len(segment) + pieceOfIPv6 - 1) / pieceOfIPv6
	}
	kinds := append(headers[:len(headers):len(headers)], r.transport)
	for i := range pieces {
		packet := make([]byte, 40)
		packet[0], packet[6], packet[7] = 0x60, kinds[0], 64
		copy(packet[8:], from[:])
		copy(packet[24:], to[:])
		for at, kind := range headers {
			header := []byte{kinds[at+1], 0, 1, 4, 0, 0, 0, 0} // padding
			if kind == fragmented {
				offset := uint16(i * pieceOfIPv6)
				if i < pieces-1 {
					offset |= 1 // more fragments
				}
				header = []byte{kinds[at+1], 0, byte(offset >> 8), byte(offset), 0, 0, byte(r.port >> 8), byte(r.port)}
			}
			packet = append(packet, header...)
		}
		piece := segment
		if pieces > 1 {
			piece = segment[i*pieceOfIPv6 : min((i+1)*pieceOfIPv6, len(segment))]
		}
		packet = append(packet, piece...)
		binary.BigEndian.PutUint16(packet[4:], uint16(len(packet)-40))
		r.client.do(func() {
			if err := unix.Sendto(r.out, packet, 0, &unix.SockaddrInet6{Addr: to}); err != nil {
				r.t.Error(err)
			}
		})
	}
}

// answered reports whether the application answers until then: to a SYN with a SYN, to a datagram with another. It reads at
// least what has arrived, also when it is then already.
func (r *raw6) answered(until time.Time) (yes bool) {
	r.client.do(func() {
		for packet := make([]byte, 100); ; {
			n, _, err := unix.Recvfrom(r.in, packet, 0)
			if err == nil && n >= 8 && binary.BigEndian.Uint16(packet) == 8080 && binary.BigEndian.Uint16(packet[2:]) == r.port &&
				(r.transport == unix.IPPROTO_UDP || packet[13]&syn != 0) {
				yes = true
				return
			}
			if err != nil && !time.Now().Before(until) {
				return
			}
		}
	})
	return yes
}

// TestPacketsOfIPv6: no headers before the transport's, and no fragments, lead a SYN past the proxy or a datagram to a
// guarded port. There is no proxy, so that whoever answers is the application. Each form arrives without capture.
func TestPacketsOfIPv6(t *testing.T) {
	t.Parallel()
	server, client := newPair(t)
	if server == nil {
		return
	}
	server.serve(applicationUser, ":8080", func(net.Conn) string { return "application" })
	echo(t, server)
	forms := map[string][]byte{
		"plain": {}, "hop by hop": {hopByHop}, "options": {options}, "both": {hopByHop, options}, "options twice": {options, options},
		"fragments": {fragmented}, "fragments behind options": {options, fragmented},
		"fragments behind both": {hopByHop, options, fragmented},
	}
	port := uint16(4000)
	sent := func(transport byte, headers []byte) *raw6 {
		port++
		r := newRaw6(t, client, transport, port)
		r.send(headers...)
		return r
	}
	transports := map[string]byte{"TCP": unix.IPPROTO_TCP, "UDP": unix.IPPROTO_UDP}
	for name, headers := range forms {
		for of, transport := range transports {
			if !sent(transport, headers).answered(time.Now().Add(30 * time.Second)) {
				t.Errorf("%s, %s: does not arrive without capture either: the test shows nothing", of, name)
			}
		}
	}
	guarded := both
	guarded.GuardPorts = []capture.Ports{{First: 8080, Last: 8080}}
	server.install(guarded)
	waiting := map[string]*raw6{}
	for name, headers := range forms {
		for of, transport := range transports {
			waiting[of+", "+name] = sent(transport, headers)
		}
	}
	until := time.Now().Add(time.Second) // for each of them, and the last
	for name, r := range waiting {
		if r.answered(until) {
			t.Errorf("%s: the application answers", name)
		}
	}
}

// echo answers datagrams on port 8080.
func echo(t *testing.T, m *machine) {
	t.Helper()
	m.do(func() {
		udp, err := net.ListenPacket("udp", ":8080")
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = udp.Close() })
		go func() {
			for buffer := make([]byte, 100); ; {
				n, from, err := udp.ReadFrom(buffer)
				if err != nil {
					return
				}
				_, _ = udp.WriteTo(buffer[:n], from)
			}
		}()
	})
}
