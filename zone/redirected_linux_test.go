package zone_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// applicationUser is the user whose connections are redirected. The Envoy runs as another.
const applicationUser = 4242

// redirected is a machine of its own, on which connections of one user go to a port of its proxy. All of it is done on
// one thread, which is in the network of that machine; a goroutine of another could not reach it.
type redirected struct {
	t    *testing.T
	port uint32
}

// newRedirected moves the caller's goroutine to a new machine, for as long as it lives. It returns nil where this
// machine does not let us make networks.
func newRedirected(t *testing.T, port uint32, addresses ...string) *redirected {
	t.Helper()
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Logf("this machine lets us make no network namespaces: %v", err) // which is no failure of the server
		return nil
	}
	commands := []string{"link set lo up", "route add default dev lo"}
	for _, a := range addresses {
		commands = append(commands, "addr add "+a+"/32 dev lo")
	}
	for _, c := range commands {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", c, err, out)
		}
	}
	r := &redirected{t: t, port: port}
	r.redirect()
	return r
}

// redirect adds the rule: what the user dials goes to the proxy's port on loopback.
func (r *redirected) redirect() {
	r.t.Helper()
	here, err := unix.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(r.t, err)
	defer unix.Close(here)
	conn, err := nftables.New(nftables.WithNetNSFd(here))
	must(r.t, err)
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "causeway"})
	chain := conn.AddChain(&nftables.Chain{Name: "output", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest})
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Meta{Key: expr.MetaKeySKUID, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(applicationUser)},
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(uint16(r.port))},
		&expr.Redir{RegisterProtoMin: 1},
	}})
	must(r.t, conn.Flush())
}

// dial connects as the application does.
func (r *redirected) dial(address string) (net.Conn, error) {
	if _, err := unix.SetfsuidRetUid(applicationUser); err != nil {
		return nil, err
	}
	defer func() { _, _ = unix.SetfsuidRetUid(0) }()
	return (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", address)
}

// hears reports whether the application reaches an echo.
func (r *redirected) hears(address string) bool {
	c, err := r.dial(address)
	if err != nil {
		return false
	}
	defer c.Close()
	return echoes(c)
}

// echoes reports whether what is said on a connection comes back.
func echoes(c net.Conn) bool {
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, "hello"); err != nil {
		return false
	}
	back := make([]byte, 5)
	_, err := io.ReadFull(c, back)
	return err == nil && string(back) == "hello"
}

// get asks for a page of a host at an address, on a connection of its own; 0 without an answer.
func (r *redirected) get(address, host string) int {
	c, err := r.dial(address)
	if err != nil {
		return 0
	}
	defer c.Close()
	return statusOn(c, host)
}

func statusOn(c net.Conn, host string) int {
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// serve runs handle for each connection to an address of the machine, until the test ends.
func (r *redirected) serve(address string, handle func(net.Conn)) {
	r.t.Helper()
	l, err := net.Listen("tcp", address)
	must(r.t, err)
	r.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); handle(c) }()
		}
	}()
}

// counter reads a statistic of an Envoy on the machine.
func (r *redirected) counter(e *envoy, name string) string {
	r.t.Helper()
	c, err := net.Dial("tcp", e.admin)
	must(r.t, err)
	defer c.Close()
	must(r.t, c.SetDeadline(time.Now().Add(5*time.Second)))
	_, err = fmt.Fprintf(c, "GET /stats?filter=^%s$ HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n", name)
	must(r.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(r.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(r.t, err)
	_, value, _ := strings.Cut(strings.TrimSpace(string(text)), ": ")
	return value
}
