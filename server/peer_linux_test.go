package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serve answers 200 to peers that PeerIsOwner accepts, and 403 with the error to others.
func serve(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- ServeHTTP(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := PeerIsOwner(r); err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
			}
		}), nil)
	}()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l
}

// askAs sends a request from a process of another user.
func askAs(t *testing.T, uid uint32, l net.Listener) string {
	t.Helper()
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`exec 3<>/dev/tcp/%s/%s; printf 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3; cat <&3`, host, port)
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = "/"
	if uid != uint32(os.Geteuid()) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestPeerIsOwner checks that only the server's own user is accepted, on both families. To act as another user takes
// root.
func TestPeerIsOwner(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l := serve(t, address)
		if got := askAs(t, uint32(os.Geteuid()), l); !strings.Contains(got, "200 OK") {
			t.Errorf("%s: the same user: %s", address, got)
		}
		if os.Geteuid() != 0 {
			continue
		}
		if got := askAs(t, 4321, l); !strings.Contains(got, "403 Forbidden") || !strings.Contains(got, ErrPeer.Error()) {
			t.Errorf("%s: another user: %s", address, got)
		}
	}
}

// TestPeerThatIsGone checks that a program that closed its end before the check has no owner: the kernel shows root's
// number for it.
func TestPeerThatIsGone(t *testing.T) {
	var conn net.Conn
	answered := make(chan error, 1)
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- ServeHTTP(ctx, l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_ = conn.Close()
			answered <- PeerIsOwner(r)
		}), nil)
	}()
	if conn, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-answered:
		if err == nil || errors.Is(err, ErrPeer) {
			t.Errorf("%v, want that it is not known", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody was asked")
	}
	end()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestSocketTable reads lines as kernels write them, of both families and of open, closing and waiting sockets.
func TestSocketTable(t *testing.T) {
	table := filepath.Join(t.TempDir(), "tcp")
	text := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1631 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 17 1 0 100 0 0 10 0
   1: 0100007F:9C40 0100007F:1631 01 00000000:00000000 00:00000000 00000000  1000        0 18 1 0 20 4 30 10 -1
   2: 0100007F:9C41 0100007F:1631 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
   3: 0100007F:9C42 0100007F:1631 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
   4: 0000000000000000FFFF00000100007F:9C43 0000000000000000FFFF00000100007F:1631 01 00000000:00000000 00:00000000 00000000  1001 0 19 1 0 20 4 30 10 -1
   5: 00000000000000000000000001000000:9C44 00000000000000000000000001000000:1631 01 00000000:00000000 00:00000000 00000000  1002 0 20 1 0 20 4 30 10 -1
   6: nonsense:9C45 0100007F:1631 01
`
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		local, remote string
		uid           int
		found         bool
	}{
		{"127.0.0.1:40000", "127.0.0.1:5681", 1000, true},
		{"127.0.0.1:40001", "127.0.0.1:5681", 0, false}, // closing: its program has released it
		{"127.0.0.1:40002", "127.0.0.1:5681", 0, false}, // without an owner
		{"127.0.0.1:40003", "127.0.0.1:5681", 1001, true},
		{"[::1]:40004", "[::1]:5681", 1002, true},
		{"127.0.0.1:40004", "127.0.0.1:5681", 0, false},
		{"127.0.0.1:40005", "127.0.0.1:5681", 0, false},
		{"127.0.0.1:40000", "127.0.0.2:5681", 0, false},
		{"127.0.0.1:5681", "127.0.0.1:40000", 0, false},
	} {
		uid, found, err := ownerIn(table, netip.MustParseAddrPort(c.local), netip.MustParseAddrPort(c.remote))
		if err != nil || uid != c.uid || found != c.found {
			t.Errorf("%s to %s: %d %t %v, want %d %t", c.local, c.remote, uid, found, err, c.uid, c.found)
		}
	}
}

// TestBothWaysToAsk checks that the kernel and its tables report the same user, on both families and for a dual-stack
// program.
func TestBothWaysToAsk(t *testing.T) {
	for _, c := range []struct{ network, address string }{{"tcp4", "127.0.0.1:0"}, {"tcp6", "[::1]:0"},
		{"tcp", "[::ffff:127.0.0.1]:0"}} {
		l, err := net.Listen(c.network, c.address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		conn, err := net.Dial(c.network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		there, here := netip.MustParseAddrPort(conn.LocalAddr().String()), netip.MustParseAddrPort(conn.RemoteAddr().String())
		for how, ask := range map[string]func(netip.AddrPort, netip.AddrPort) (int, error){"ask": askOwner,
			"find": findOwner} {
			if uid, err := ask(unmapped(there), unmapped(here)); err != nil || uid != os.Geteuid() {
				t.Errorf("%s %s: %d %v", how, c.address, uid, err)
			}
			if uid, err := ask(unmapped(there), netip.AddrPortFrom(unmapped(here).Addr(), 1)); err == nil {
				t.Errorf("%s %s: a connection that is not: %d", how, c.address, uid)
			}
		}
	}
}
