package zone_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/zone"
)

const banner = "220 secret banner\n"

// speaksFirst runs a TCP application that sends a greeting and then echoes lines.
func speaksFirst(t *testing.T) (port int, connections func() int) {
	t.Helper()
	var n counter
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.add()
			go func() {
				defer c.Close()
				fmt.Fprint(c, banner)
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintf(c, "echo %s\n", lines.Text())
				}
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().(*net.TCPAddr).Port, n.value
}

// converse sends a line, unless it is empty, and returns the first two lines that come back.
func converse(certificate *tls.Certificate, port int, line string, wait time.Duration) (string, error) {
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port),
		&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(wait))
	if line != "" {
		if _, err := fmt.Fprintln(conn, line); err != nil {
			return "", err
		}
	}
	r := bufio.NewReader(conn)
	first, err := r.ReadString('\n')
	if err != nil {
		return first, err
	}
	second, err := r.ReadString('\n')
	return first + second, err
}

func TestTCPInbound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, connections := speaksFirst(t)
	port := freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [{name: main, port: %d, servicePort: %d}]}}`, port, service))
	w.apply(allowAlice)
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, bob := w.certificate("alice"), w.certificate("bob")
	eventually(t, "alice's line comes back", func() bool {
		got, err := converse(alice, port, "hello", time.Second)
		return err == nil && got == banner+"echo hello\n"
	})
	before := connections()
	for range 50 {
		if got, err := converse(bob, port, "hello", time.Second); err == nil || got != "" {
			t.Fatalf("bob reads %q (%v)", got, err)
		}
	}
	if got, err := converse(bob, port, "", 300*time.Millisecond); err == nil || got != "" {
		t.Errorf("bob, who says nothing, reads %q", got)
	}
	if n := connections() - before; n != 0 {
		t.Errorf("the application was reached %d times by bob", n)
	}
}
