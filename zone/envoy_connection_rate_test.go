package zone_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// echoServer runs a TCP application that sends back what it gets, until the test ends.
func echoServer(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// echoed sends a text over a connection and reads it back.
func echoed(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := conn.Write([]byte("hello")); err != nil {
		return err
	}
	got := make([]byte, 5)
	_, err := io.ReadFull(conn, got)
	return err
}

// TestConnectionRate shows the fields of a MeshRateLimit for connections in a real Envoy, on inbounds of TCP and HTTP.
// No listener moves, and connections that are open stay.
func TestConnectionRate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	db, web := freePort(t), freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: db, port: %d, servicePort: %d, protocol: tcp}, {name: web, port: %d, servicePort: %d, protocol: http}]}}`, db, echoServer(t), web, service))
	w.apply(allowAlice)
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, certificate := w.client("alice"), w.certificate("alice")
	eventually(t, "alice allowed", func() bool { return status(alice, web) == http.StatusOK })
	dial := func() (net.Conn, error) {
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 2 * time.Second}, "tcp", fmt.Sprintf("127.0.0.1:%d", db),
			&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}})
		if err != nil {
			return nil, err
		}
		if err := echoed(conn); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
	var open net.Conn
	soon(t, func() (err error) { open, err = dial(); return err })
	defer open.Close()
	listeners := e.listeners()
	limit := func(conf string) {
		w.apply("{type: MeshRateLimit, mesh: default, name: p, spec: {rules: [" + conf + "]}}")
	}
	refusedTwice := func() error {
		for range 2 {
			if conn, err := dial(); err == nil {
				_ = conn.Close()
				return fmt.Errorf("a connection over the limit is served")
			}
		}
		return nil
	}
	const oneAnHour = "{default: {local: {tcp: {connectionRate: {num: 1, interval: 1h}}}}}"

	limit(oneAnHour)
	soon(t, refusedTwice)
	soon(t, func() error { return want(askAs(t, alice, "GET", web, "/"), 0) })
	must(t, echoed(open))

	limit("{default: {local: {tcp: {disabled: true, connectionRate: {num: 1, interval: 1h}}}}}")
	free := func() error {
		for range 5 {
			conn, err := dial()
			if err != nil {
				return err
			}
			_ = conn.Close()
		}
		return want(askAs(t, alice, "GET", web, "/"), 200)
	}
	soon(t, free)

	limit("{default: {local: {tcp: {connectionRate: {num: 1, interval: 300ms}}}}}")
	soon(t, refusedTwice)
	soon(t, func() error { // after the interval, one more
		conn, err := dial()
		if err == nil {
			_ = conn.Close()
		}
		return err
	})

	limit(oneAnHour)
	soon(t, refusedTwice)
	w.remove(resources.TypeMeshRateLimit, "p")
	soon(t, free)
	must(t, echoed(open))
	if now := e.listeners(); fmt.Sprint(now) != fmt.Sprint(listeners) {
		t.Errorf("listeners moved: %v, then %v", listeners, now)
	}
}
