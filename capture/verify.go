package capture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

const (
	// verifyTime limits Verify for each address: longer than an IPv6 address takes until it is known to be nobody else's.
	// Until then, it does not answer.
	verifyTime = 5 * time.Second
	// tryTime limits each connection, and answerTime what the proxy's port takes to have it. It stays within the machine.
	tryTime, answerTime = 500 * time.Millisecond, 2 * time.Second
)

// Verify checks that the network of the caller has the rules of a capture, without the right to read them: only the
// rules redirect a connection of the proxy's user, to an address of its own machine, to the inbound port. The caller runs
// as the proxy's user, while the proxy does not run. As the rules are installed in one step, one connection for each
// address stands for all of them. Errors wrap ErrNotCaptured or ErrSettings.
func Verify(ctx context.Context, s Settings) error {
	if err := s.check(); err != nil {
		return err
	}
	port, err := s.capturedPort()
	if err != nil {
		return err
	}
	addresses, err := ownAddresses()
	if err != nil {
		return err
	}
	if len(addresses) == 0 {
		return fmt.Errorf("%w: this machine has no address other than loopback", ErrNotCaptured)
	}
	var listen net.ListenConfig
	proxy, err := listen.Listen(ctx, "tcp", ":"+strconv.Itoa(int(s.InboundPort)))
	if err != nil {
		return fmt.Errorf("the proxy's inbound port has to be free for this: %w", err)
	}
	defer proxy.Close()
	for _, address := range addresses {
		if err := reaches(ctx, netip.AddrPortFrom(address, port), proxy.(*net.TCPListener)); err != nil {
			return err
		}
	}
	return nil
}

// capturedPort returns a port, other than the proxy's, to which incoming connections are captured.
func (s *Settings) capturedPort() (uint16, error) {
	for port := uint16(1); s.InboundPort != 0 && port != 0; port++ {
		one, out := Ports{port, port}, port == s.InboundPort || port == s.ProofPort
		for _, p := range s.ExcludeInboundPorts {
			out = out || p.has(port)
		}
		if !out && s.captures(one) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("%w: no incoming connection is captured, by which this could be verified", ErrSettings)
}

// ownAddresses returns the addresses at which others reach this machine, without those of one link only.
func ownAddresses() (out []netip.Addr, err error) {
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
			out = append(out, p.Addr())
		}
	}
	return out, err
}

// reaches dials an address, and returns an error unless the connection reaches the proxy.
func reaches(ctx context.Context, to netip.AddrPort, proxy *net.TCPListener) error {
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	conn, err := dial(ctx, to)
	if err != nil {
		return fmt.Errorf("%w: a connection to %s did not reach the proxy's port: %w", ErrNotCaptured, to, err)
	}
	defer conn.Close()
	if err := proxy.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	for {
		accepted, err := proxy.Accept()
		if err != nil {
			return fmt.Errorf("%w: something other than the proxy's port answers at %s", ErrNotCaptured, to)
		}
		same := sameEnd(accepted.RemoteAddr(), conn.LocalAddr())
		accepted.Close()
		if same { // others may call at this moment
			return nil
		}
	}
}

// dial connects to an address of this machine, which may be too new to answer. A refusal is an answer.
func dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	dialer := net.Dialer{Timeout: tryTime}
	for {
		begun := time.Now()
		conn, err := dialer.DialContext(ctx, "tcp", to.String())
		if err == nil || errors.Is(err, syscall.ECONNREFUSED) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(tryTime - time.Since(begun)):
		}
	}
}

func sameEnd(a, b net.Addr) bool {
	x, okX := a.(*net.TCPAddr)
	y, okY := b.(*net.TCPAddr)
	return okX && okY && x.Port == y.Port && x.IP.Equal(y.IP)
}
