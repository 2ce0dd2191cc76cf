package capture_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/capture"
)

// TestVerify: without a right to read the rules, the proxy's user knows whether they are there.
func TestVerify(t *testing.T) {
	t.Parallel()
	server, client := newPair(t)
	if server == nil {
		return
	}
	verify := func(user int, change func(*capture.Settings)) (err error) {
		s := both
		s.ProxyUser = proxyUser
		if change != nil {
			change(&s)
		}
		server.as(user, func() { err = capture.Verify(t.Context(), s) })
		return err
	}
	missing := func(what string, err error, want string) {
		t.Helper()
		if !errors.Is(err, capture.ErrNotCaptured) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	missing("no rules", verify(proxyUser, nil), "a connection to 10.99.0.1:1 did not reach the proxy's port")
	server.serve(applicationUser, ":1", func(net.Conn) string { return "application" })
	missing("no rules, and no port below the proxy's", verify(proxyUser, func(s *capture.Settings) {
		s.ExcludeInboundPorts = []capture.Ports{{First: 1, Last: 15005}}
	}), "a connection to 10.99.0.1:15007")
	missing("no rules, and a port that answers", verify(proxyUser, nil), "something other than the proxy's port answers at 10.99.0.1:1")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // another machine calls the proxy all the time
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				client.hears(0, server4+":15006")
			}
		}
	}()
	missing("no rules, and calls from elsewhere", verify(proxyUser, nil), "something other than the proxy's port answers at 10.99.0.1:1")
	close(stop)
	<-stopped

	server.install(both)
	for what, err := range map[string]error{
		"all addresses": verify(proxyUser, nil),
		"excluded ports": verify(proxyUser, func(s *capture.Settings) {
			s.ExcludeInboundPorts = []capture.Ports{{First: 1, Last: 14000}, {First: 14002, Last: 15005}}
		}),
		"some ports": verify(proxyUser, func(s *capture.Settings) { s.InboundPorts = []capture.Ports{{First: 8080, Last: 8080}} }),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	missing("another user's", verify(otherUser, nil), "something other")

	every := func(s *capture.Settings) { s.ExcludeInboundPorts = []capture.Ports{{First: 1, Last: 65535}} }
	if err := verify(proxyUser, every); !errors.Is(err, capture.ErrSettings) {
		t.Errorf("without an inbound port that is captured: %v", err)
	}
	server.install(capture.Settings{InboundPort: 15006, OutboundPort: 15001, ExcludeInboundPorts: []capture.Ports{{First: 1, Last: 1}}})
	missing("other rules", verify(proxyUser, nil), "10.99.0.1:1")
	server.install(capture.Settings{InboundPort: 15016, OutboundPort: 15001})
	missing("another port", verify(proxyUser, nil), "did not reach the proxy's port")

	server.install(both)
	server.serve(proxyUser, ":15006", func(net.Conn) string { return "inbound" })
	if err := verify(proxyUser, nil); err == nil || !strings.Contains(err.Error(), "has to be free") {
		t.Errorf("beside the proxy: %v", err)
	}
}

// TestVerifyByIPv6: a machine that has IPv6 alone is verified by it.
func TestVerifyByIPv6(t *testing.T) {
	t.Parallel()
	server, _ := newPair(t)
	if server == nil {
		return
	}
	s := both
	s.ProxyUser = proxyUser
	server.install(both)
	server.ip("-4 addr flush dev wire")
	var err error
	server.as(proxyUser, func() { err = capture.Verify(t.Context(), s) })
	if err != nil {
		t.Errorf("IPv6 alone: %v", err)
	}
	server.uninstall()
	server.as(proxyUser, func() { err = capture.Verify(t.Context(), s) })
	if !errors.Is(err, capture.ErrNotCaptured) || !strings.Contains(err.Error(), "[fd99::1]:1") {
		t.Errorf("IPv6 alone, without rules: %v", err)
	}
	server.install(both)
	server.ip("addr flush dev wire")
	server.as(proxyUser, func() { err = capture.Verify(t.Context(), s) })
	if !errors.Is(err, capture.ErrNotCaptured) {
		t.Errorf("without an address: %v", err)
	}
}

// TestVerifyANewAddress: an address of IPv6 answers nobody until it is known that no neighbour has it. Verify waits for it,
// and a pod that runs once does not fail for it.
func TestVerifyANewAddress(t *testing.T) {
	t.Parallel()
	server, _ := newPair(t)
	if server == nil {
		return
	}
	s := both
	s.ProxyUser = proxyUser
	server.install(both)
	server.ip("addr add fd99::7/64 dev wire")
	var err error
	server.as(proxyUser, func() { err = capture.Verify(t.Context(), s) })
	if err != nil {
		t.Error(err)
	}
}
