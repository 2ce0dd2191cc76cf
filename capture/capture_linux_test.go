package capture_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/capture"
)

var both = capture.Settings{InboundPort: capture.InboundPort, OutboundPort: capture.OutboundPort}

// want compares what was heard, by a name of the attempt.
func want(t *testing.T, attempts map[string][2]string) {
	t.Helper()
	for name, a := range attempts {
		if a[0] != a[1] {
			t.Errorf("%s: %q, want %q", name, a[0], a[1])
		}
	}
}

// TestInbound: whatever comes from another machine meets the proxy.
func TestInbound(t *testing.T) {
	t.Parallel()
	server, client := newPair(t)
	if server == nil {
		return
	}
	server.serveAll()
	if word := client.hears(0, server4+":8080"); word != "application" {
		t.Fatalf("without capture: %q", word)
	}
	server.install(both)
	want(t, map[string][2]string{
		"an address":          {client.hears(0, server4+":8080"), "inbound 10.99.0.1:8080"},
		"another address":     {client.hears(0, server4b+":8080"), "inbound 10.99.0.11:8080"},
		"IPv6":                {client.hears(0, "["+server6+"]:8080"), "inbound [fd99::1]:8080"},
		"another port":        {client.hears(0, server4+":9090"), "inbound 10.99.0.1:9090"},
		"a port of nobody":    {client.hears(0, server4+":9999"), "inbound 10.99.0.1:9999"},
		"the proxy's inbound": {client.hears(0, server4+":15006"), "inbound 10.99.0.1:15006"},
		"the proxy's outbound, which only this machine reaches": {client.hears(0, server4+":15001"),
			"inbound 10.99.0.1:15001"},
		"within the machine":                       {server.hears(otherUser, "127.0.0.1:8080"), "application"},
		"its own address":                          {server.hears(applicationUser, server4+":8080"), "application"},
		"the proxy, to the application":            {server.hears(proxyUser, "127.0.0.1:8080"), "application"},
		"the proxy, by IPv6":                       {server.hears(proxyUser, "[::1]:8080"), "application"},
		"the proxy, to a service that is here too": {server.hears(proxyUser, server4+":8080"), "inbound 10.99.0.1:8080"},
	})

	server.install(capture.Settings{InboundPort: 15006,
		InboundPorts:            []capture.Ports{{First: 8080, Last: 8090}, {First: 9090, Last: 9090}},
		ExcludeInboundPorts:     []capture.Ports{{First: 9090, Last: 9090}},
		ExcludeInboundAddresses: []netip.Prefix{netip.MustParsePrefix("fd99::2/128")}})
	want(t, map[string][2]string{
		"a range of ports":      {client.hears(0, server4+":8080"), "inbound 10.99.0.1:8080"},
		"a port of no range":    {client.hears(0, server4+":8091"), "refused"},
		"an excluded port":      {client.hears(0, server4+":9090"), "application"},
		"an excluded address":   {client.hears(0, "["+server6+"]:8080"), "application"},
		"nothing goes outbound": {server.hears(applicationUser, client4+":7"), "refused"},
	})
}

// TestOutbound: what the machine's processes dial meets the proxy, but for what is excluded.
func TestOutbound(t *testing.T) {
	t.Parallel()
	server, client := newPair(t)
	if server == nil {
		return
	}
	server.serveAll()
	client.serveAll()
	server.install(both)
	want(t, map[string][2]string{
		"IPv4":      {server.hears(applicationUser, client4+":8080"), "outbound 10.99.0.2:8080"},
		"IPv6":      {server.hears(applicationUser, "["+client6+"]:8080"), "outbound [fd99::2]:8080"},
		"root":      {server.hears(0, client4+":8080"), "outbound 10.99.0.2:8080"},
		"the proxy": {server.hears(proxyUser, client4+":8080"), "application"},
	})
	server.install(capture.Settings{OutboundPort: 15001, ExcludeUsers: []uint32{otherUser},
		ExcludeOutboundPorts:     []capture.Ports{{First: 9000, Last: 9099}},
		ExcludeOutboundAddresses: []netip.Prefix{netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("10.0.0.0/25")}})
	want(t, map[string][2]string{
		"an excluded user":             {server.hears(otherUser, client4+":8080"), "application"},
		"an excluded port":             {server.hears(applicationUser, client4+":9090"), "application"},
		"an excluded range":            {server.hears(applicationUser, "["+client6+"]:8080"), "application"},
		"an address beside a range":    {server.hears(applicationUser, client4+":8080"), "outbound 10.99.0.2:8080"},
		"nothing that comes is caught": {client.hears(0, server4+":8080"), "application"},
	})
}

// TestFailsClosed: without a proxy nothing is reached, and IPv6 is no way around one that has IPv4 only.
func TestFailsClosed(t *testing.T) {
	t.Parallel()
	server, client := newPair(t)
	if server == nil {
		return
	}
	server.serve(applicationUser, ":8080", func(net.Conn) string { return "application" })
	client.serveAll()
	server.install(both)
	problems := func() (out []string) {
		for _, l := range server.status().Listeners {
			out = append(out, l.Problem)
		}
		return out
	}
	for _, p := range problems() {
		if !strings.HasPrefix(p, "nobody listens on port 1500") {
			t.Errorf("status says %q", p)
		}
	}
	want(t, map[string][2]string{
		"in":           {client.hears(0, server4+":8080"), "refused"},
		"in, by IPv6":  {client.hears(0, "["+server6+"]:8080"), "refused"},
		"out":          {server.hears(applicationUser, client4+":8080"), "refused"},
		"out, by IPv6": {server.hears(applicationUser, "["+client6+"]:8080"), "refused"},
	})
	server.serve(proxyUser, "0.0.0.0:15006", func(net.Conn) string { return "inbound" })
	server.serve(otherUser, "127.0.0.1:15001", func(net.Conn) string { return "not the proxy" })
	want(t, map[string][2]string{
		"in":          {client.hears(0, server4+":8080"), "inbound"},
		"in, by IPv6": {client.hears(0, "["+server6+"]:8080"), "refused"},
	})
	if p := problems(); p[0] != "" || !strings.HasPrefix(p[1], "user 4343 listens on port 15001") {
		t.Errorf("status says %q", p)
	}
}

// TestGuard: a guarded port is reached by the proxy alone, even where capture does not look.
func TestGuard(t *testing.T) {
	t.Parallel()
	server, client := newPair(t)
	if server == nil {
		return
	}
	server.serveAll()
	echo(t, server)
	asks := func(m *machine, address string) (out string) {
		m.do(func() {
			c, err := net.Dial("udp", address)
			if err != nil {
				out = err.Error()
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = c.Write([]byte("hello"))
			buffer := make([]byte, 10)
			n, err := c.Read(buffer)
			if out = string(buffer[:n]); err != nil {
				out = heard(nil, err)
			}
		})
		return out
	}
	server.install(both)
	want(t, map[string][2]string{"UDP without a guard": {asks(client, server4+":8080"), "hello"}})

	guarded := both
	guarded.GuardPorts = []capture.Ports{{First: 8080, Last: 8080}}
	guarded.ExcludeInboundAddresses = []netip.Prefix{netip.MustParsePrefix(client6 + "/128")}
	server.install(guarded)
	want(t, map[string][2]string{
		"UDP":                       {asks(client, server4+":8080"), "refused"},
		"UDP, by IPv6":              {asks(client, "["+server6+"]:8080"), "refused"},
		"another user":              {server.hears(otherUser, "127.0.0.1:8080"), "refused"},
		"root":                      {server.hears(0, "127.0.0.1:8080"), "refused"},
		"another user, by IPv6":     {server.hears(otherUser, "[::1]:8080"), "refused"},
		"another user, own address": {server.hears(otherUser, server4+":8080"), "refused"},
		"what capture excludes":     {client.hears(0, "["+server6+"]:8080"), "refused"},
		"an unguarded port":         {server.hears(otherUser, "127.0.0.1:9090"), "application"},
		"the proxy":                 {server.hears(proxyUser, "127.0.0.1:8080"), "application"},
		"from another machine":      {client.hears(0, server4+":8080"), "inbound 10.99.0.1:8080"},
	})
}

// TestUninstall: the application is reached as before, without a rule of ours.
func TestUninstall(t *testing.T) {
	t.Parallel()
	server, client := newPair(t)
	if server == nil {
		return
	}
	server.serveAll()
	client.serveAll()
	server.install(both)
	want(t, map[string][2]string{"captured": {client.hears(0, server4+":8080"), "inbound 10.99.0.1:8080"}})
	server.uninstall()
	want(t, map[string][2]string{
		"in":  {client.hears(0, server4+":8080"), "application"},
		"out": {server.hears(applicationUser, client4+":8080"), "application"},
	})
}

func TestNotAllowed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if m == nil {
		return
	}
	m.do(func() {
		var header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var have, less [2]unix.CapUserData
		if err := unix.Capget(&header, &have[0]); err != nil {
			t.Error(err)
			return
		}
		less = have
		less[0].Effective &^= 1 << unix.CAP_NET_ADMIN
		if err := unix.Capset(&header, &less[0]); err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = unix.Capset(&header, &have[0]) }()
		s := both
		s.ProxyUser = proxyUser
		if _, err := capture.Install(s); err == nil || !strings.Contains(err.Error(), "CAP_NET_ADMIN") {
			t.Errorf("install: %v", err)
		}
		if _, err := capture.Read(); err == nil || !strings.Contains(err.Error(), "CAP_NET_ADMIN") {
			t.Errorf("status: %v", err)
		}
	})
}

// TestLargest installs as many entries as settings may have.
func TestLargest(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if m == nil {
		return
	}
	s := capture.Settings{InboundPort: 15006, OutboundPort: 15001, DNSPort: 15053}
	for i := range uint16(64) {
		s.InboundPorts = append(s.InboundPorts, capture.Ports{First: 100 * i, Last: 100*i + 20})
		s.GuardPorts = append(s.GuardPorts, capture.Ports{First: 100 * i, Last: 100*i + 10})
		s.ExcludeInboundPorts = append(s.ExcludeInboundPorts, capture.Ports{First: 100*i + 11, Last: 100*i + 15})
		s.ExcludeOutboundPorts = append(s.ExcludeOutboundPorts, capture.Ports{First: 100 * i, Last: 100*i + 15})
		s.ExcludeUsers = append(s.ExcludeUsers, 100_000+uint32(i))
		prefix := netip.MustParsePrefix(fmt.Sprintf("fd%02x:1::/32", i))
		s.ExcludeInboundAddresses, s.ExcludeOutboundAddresses = append(s.ExcludeInboundAddresses, prefix), append(s.ExcludeOutboundAddresses, prefix)
	}
	s.InboundPorts[0].First, s.GuardPorts[0].First, s.ExcludeOutboundPorts[0].First = 1, 1, 1
	m.install(s)
	if is := m.status(); is.State != capture.Installed {
		t.Errorf("it is %s: %q", is.State, is.Problems)
	}
}
