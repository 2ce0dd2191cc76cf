package capture_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/capture"
)

// The users of a machine: its proxy, the application and another.
const (
	proxyUser       = 5678
	applicationUser = 4242
	otherUser       = 4343
)

// machine is a network of its own. Everything that happens there is done on one thread.
type machine struct {
	t    *testing.T
	work chan func()
	tid  int
}

// newMachine makes a machine; nil if this one allows no namespaces, which is no failure of ours.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, work: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		m.tid = unix.Gettid()
		ready <- err
		for f := range m.work {
			f()
		}
	}()
	t.Cleanup(func() { close(m.work) })
	if err := <-ready; err != nil {
		t.Logf("this machine lets us make no network namespaces: %v", err)
		return nil
	}
	m.ip("link set lo up")
	return m
}

// another returns another thread of the same machine, for what takes its time beside other things.
func (m *machine) another() *machine {
	other := &machine{t: m.t, work: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked, as above
		network, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", m.tid))
		if err == nil {
			err = errors.Join(unix.Setns(int(network.Fd()), unix.CLONE_NEWNET), network.Close())
		}
		other.tid = unix.Gettid()
		ready <- err
		for f := range other.work {
			f()
		}
	}()
	m.t.Cleanup(func() { close(other.work) })
	if err := <-ready; err != nil {
		m.t.Error(err)
	}
	return other
}

// do runs f on the machine.
func (m *machine) do(f func()) {
	done := make(chan struct{})
	m.work <- func() { defer close(done); f() }
	<-done
}

// as runs f on the machine as a user.
func (m *machine) as(user int, f func()) {
	m.do(func() {
		if _, err := unix.SetfsuidRetUid(user); err != nil {
			m.t.Error(err)
		}
		defer func() { _, _ = unix.SetfsuidRetUid(0) }()
		f()
	})
}

func (m *machine) ip(commands ...string) {
	m.t.Helper()
	for _, c := range commands {
		m.do(func() {
			if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
				m.t.Errorf("ip %s: %v: %s", c, err, out)
			}
		})
	}
}

// The addresses of a server and of a client beside it.
const (
	server4, server4b, server6 = "10.99.0.1", "10.99.0.11", "fd99::1"
	client4, client6           = "10.99.0.2", "fd99::2"
)

// newPair makes two machines with a wire between them.
func newPair(t *testing.T) (server, client *machine) {
	server = newMachine(t)
	if server == nil {
		return nil, nil
	}
	client = newMachine(t)
	server.ip(fmt.Sprintf("link add wire type veth peer name wire netns %d", client.tid),
		"addr add "+server4+"/24 dev wire", "addr add "+server4b+"/24 dev wire",
		"addr add "+server6+"/64 dev wire nodad", "link set wire up")
	client.ip("addr add "+client4+"/24 dev wire", "addr add "+client6+"/64 dev wire nodad", "link set wire up")
	return server, client
}

// serve answers each connection to an address with a word: the proxy says where a connection was going.
func (m *machine) serve(user int, address string, word func(net.Conn) string) {
	m.t.Helper()
	m.as(user, func() {
		network := "tcp"
		if strings.HasPrefix(address, "0.0.0.0") {
			network = "tcp4"
		}
		l, err := net.Listen(network, address)
		if err != nil {
			m.t.Error(err)
			return
		}
		m.t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, word(c))
				_ = c.Close()
			}
		}()
	})
}

// serveAll starts an application on port 8080 and 9090, and a proxy, on all addresses.
func (m *machine) serveAll() {
	m.t.Helper()
	says := func(text string) func(net.Conn) string { return func(net.Conn) string { return text } }
	m.serve(applicationUser, ":8080", says("application"))
	m.serve(applicationUser, ":9090", says("application"))
	m.serve(proxyUser, ":15006", func(c net.Conn) string { return "inbound " + before(c) })
	m.serve(proxyUser, "127.0.0.1:15001", func(c net.Conn) string { return "outbound " + before(c) })
	m.serve(proxyUser, "[::1]:15001", func(c net.Conn) string { return "outbound " + before(c) })
}

// before returns where a connection was going.
func before(c net.Conn) string {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err.Error()
	}
	const originalDst = 80 // SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST
	out := ""
	_ = raw.Control(func(fd uintptr) {
		if a := c.LocalAddr().(*net.TCPAddr); a.IP.To4() != nil {
			var is *unix.IPv6Mreq // as large as an IPv4 address of a socket
			if is, err = unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, originalDst); err == nil {
				at := is.Multiaddr
				out = fmt.Sprintf("%s:%d", netip.AddrFrom4([4]byte(at[4:8])), int(at[2])<<8|int(at[3]))
			}
			return
		}
		var is *unix.IPv6MTUInfo // which begins with an IPv6 address of a socket
		if is, err = unix.GetsockoptIPv6MTUInfo(int(fd), unix.SOL_IPV6, originalDst); err == nil {
			port := is.Addr.Port
			out = fmt.Sprintf("[%s]:%d", netip.AddrFrom16(is.Addr.Addr), port>>8|port<<8&0xff00)
		}
	})
	if err != nil {
		return err.Error()
	}
	return out
}

// hears returns what a server says to a user of the machine; "refused" if it takes no connection.
func (m *machine) hears(user int, address string) (word string) {
	m.as(user, func() { word = heard((&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", address)) })
	return word
}

func heard(c net.Conn, err error) string {
	if err != nil {
		if errors.Is(err, unix.ECONNREFUSED) {
			return "refused"
		}
		return err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	text, err := io.ReadAll(c)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// install installs a capture on the machine, and reports whether that changed something.
func (m *machine) install(s capture.Settings) (changed bool) {
	m.t.Helper()
	s.ProxyUser = proxyUser
	m.do(func() {
		var err error
		if changed, err = capture.Install(s); err != nil {
			m.t.Error(err)
		}
	})
	return changed
}

func (m *machine) status() (out *capture.Status) {
	m.t.Helper()
	m.do(func() {
		var err error
		if out, err = capture.Read(); err != nil {
			m.t.Error(err)
			out = &capture.Status{}
		}
	})
	return out
}

func (m *machine) uninstall() (removed bool) {
	m.t.Helper()
	m.do(func() {
		var err error
		if removed, err = capture.Uninstall(); err != nil {
			m.t.Error(err)
		}
	})
	return removed
}
