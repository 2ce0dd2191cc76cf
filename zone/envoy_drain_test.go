package zone_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/zone"
)

// talk is an open connection to a TCP inbound.
type talk struct {
	conn  *tls.Conn
	lines *bufio.Reader
}

// open connects and returns once the proxy has accepted the client.
func open(t *testing.T, certificate *tls.Certificate, port int) *talk {
	t.Helper()
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port),
		&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	c := &talk{conn, bufio.NewReader(conn)}
	_, err = fmt.Fprintln(conn, "first")
	must(t, err)
	for _, want := range []string{banner, "echo first\n"} {
		got, err := c.lines.ReadString('\n')
		if err != nil || got != want {
			t.Fatalf("read %q, %v, want %q", got, err, want)
		}
	}
	return c
}

// alive reports whether the application still answers on the connection.
func (c *talk) alive() bool {
	_ = c.conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintln(c.conn, "more"); err != nil {
		return false
	}
	got, err := c.lines.ReadString('\n')
	return err == nil && got == "echo more\n"
}

// ended waits until the other side closes.
func (c *talk) ended(within time.Duration) error {
	_ = c.conn.SetDeadline(time.Now().Add(within))
	_, err := c.lines.ReadByte()
	if errors.Is(err, os.ErrDeadlineExceeded) || err == nil {
		return fmt.Errorf("open after %s (%w)", within, err)
	}
	return nil
}

func permit(name, workloads, inbound string) string {
	return fmt.Sprintf(`{type: MeshTrafficPermission, mesh: default, name: %s, spec: {targetRef: {kind: Dataplane, labels: {app: backend}, sectionName: %s}, rules: [{default: {allow: [%s]}}]}}`,
		name, inbound, workloads)
}

func exactly(workload string) string {
	return fmt.Sprintf(`{spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/%s"}}`, workload)
}

// TestLosingAccessEndsTCPConnections: the connections of the inbound whose permissions shrank end within the drain time
// (one second here), and no others do.
func TestLosingAccessEndsTCPConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := speaksFirst(t)
	main, other := freePort(t), freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: %d}, {name: other, port: %d, servicePort: %d}]}}`, main, service, other, service))
	w.apply(permit("main", exactly("alice"), "main"))
	w.apply(permit("other", exactly("alice"), "other"))
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, bob := w.certificate("alice"), w.certificate("bob")
	lets := func(certificate *tls.Certificate, port int) bool {
		got, err := converse(certificate, port, "hello", time.Second)
		return err == nil && got != ""
	}
	eventually(t, "alice is let in", func() bool { return lets(alice, main) && lets(alice, other) })
	ofMain, ofOther := open(t, alice, main), open(t, alice, other)

	w.apply(permit("main", exactly("alice")+","+exactly("bob"), "main"))
	eventually(t, "bob is let in", func() bool { return lets(bob, main) })
	const replaced = "listener_manager.(listener_modified|listener_in_place_updated)"
	for name, n := range e.counted(replaced) {
		if n != "0" {
			t.Errorf("giving access moved a listener: %s: %s", name, n)
		}
	}
	ofBob := open(t, bob, main)

	w.apply(permit("main", exactly("bob"), "main"))
	if err := ofMain.ended(patience); err != nil {
		t.Errorf("alice's connection after she lost access: %v", err)
	}
	if lets(alice, main) {
		t.Error("alice is still let in")
	}
	if err := ofBob.ended(patience); err != nil {
		t.Errorf("bob's connection to the same inbound: %v", err)
	}
	if !ofOther.alive() {
		t.Error("the connection to the other inbound ended too")
	}
	if got := e.stats(
		"listener_manager.listener_in_place_updated")["listener_manager.listener_in_place_updated"]; got != "1" {
		t.Errorf("%s filter chains were replaced, want 1", got)
	}
}
