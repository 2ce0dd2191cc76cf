package zone_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// lasts opens a connection to an inbound, sends a text, and returns what came until the other side closed, and when
// that was.
func (w *world) lasts(port int, certificate *tls.Certificate, send string) (string, time.Duration) {
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port),
		&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}})
	if err != nil {
		return err.Error(), 0
	}
	defer conn.Close()
	began := time.Now()
	_ = conn.SetDeadline(began.Add(3 * time.Second))
	_, _ = conn.Write([]byte(send))
	got, _ := io.ReadAll(conn)
	return string(got), time.Since(began)
}

// blackHole is a port of which nobody takes a connection: its queue is full.
func blackHole(t *testing.T) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	must(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	must(t, err)
	port := name.(*syscall.SockaddrInet4).Port
	for range 8 {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), 100*time.Millisecond)
		if err != nil {
			return port
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the queue takes all connections")
	return 0
}

// TestTimeoutsOfReceivedConnections shows in a real Envoy the fields of a MeshTimeout that limit an inbound's
// connections.
func TestTimeoutsOfReceivedConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	web, db, lost := freePort(t), freePort(t), freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: web, port: %d, servicePort: %d, protocol: http}, {name: db, port: %d, servicePort: %d, protocol: tcp}, {name: lost, port: %d, servicePort: %d, protocol: http}]}}`,
		web, service, db, service, lost, blackHole(t)))
	w.apply(allowAlice)
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, certificate := w.client("alice"), w.certificate("alice")
	eventually(t, "alice allowed", func() bool { return status(alice, web) == http.StatusOK })
	const request, partial = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHo"
	closes := func(port int, send, want string) func() error {
		return func() error {
			got, after := w.lasts(port, certificate, send)
			if len(got) < len(want) || got[:len(want)] != want || after < 250*time.Millisecond || after > 2*time.Second {
				return fmt.Errorf("%.40q, closed after %s", got, after)
			}
			return nil
		}
	}
	for _, tt := range []struct {
		name, conf string
		moves      bool
		until      func() error
	}{
		{"connection to the application", `{connectionTimeout: 300ms}`, false, func() error {
			if got := askAs(t, alice, "GET", lost, "/"); got.status != http.StatusServiceUnavailable ||
				got.took > 2*time.Second {
				return fmt.Errorf("%d after %s", got.status, got.took)
			}
			return nil
		}},
		{"idle connection of requests", `{idleTimeout: 300ms}`, true, closes(web, request, "HTTP/1.1 200")},
		{"idle connection", `{idleTimeout: 300ms}`, true, closes(db, request, "HTTP/1.1 200")},
		{"headers", `{http: {requestHeadersTimeout: 300ms}}`, true, closes(web, partial, "HTTP/1.1 408")},
		{"life of a connection", `{http: {maxConnectionDuration: 300ms}}`, true,
			func() error { return w.ends(web, certificate, request) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			listeners := e.listeners()["listener self_inbound_dp_web"]
			w.apply("{type: MeshTimeout, mesh: default, name: p, spec: {default: " + tt.conf + "}}")
			soon(t, tt.until)
			if moved := e.listeners()["listener self_inbound_dp_web"] != listeners; moved != tt.moves {
				t.Errorf("the listener moved: %v", moved)
			}
			with := e.listeners()["listener self_inbound_dp_web"]
			w.remove(resources.TypeMeshTimeout, "p")
			if tt.moves {
				eventually(t, "the listener without it",
					func() bool { return e.listeners()["listener self_inbound_dp_web"] != with })
			}
		})
	}
}

// ends sends requests over one connection until the proxy ends it, which it must within a second.
func (w *world) ends(port int, certificate *tls.Certificate, request string) error {
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port),
		&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}})
	if err != nil {
		return err
	}
	defer conn.Close()
	began, reader := time.Now(), bufio.NewReader(conn)
	for time.Since(began) < time.Second {
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		_, _ = conn.Write([]byte(request))
		resp, err := http.ReadResponse(reader, nil)
		if err != nil || resp.Close {
			return nil
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return fmt.Errorf("the connection goes on after a second")
}
