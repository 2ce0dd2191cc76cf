package zone_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// TestOpenConnectionsLastThroughPolicies: a TCP connection through both proxies goes on while routes, retries, idle
// times and logs come, change and go, though the drain time of 1 s passes. New connections get what changed, and no
// listener moves. A response with the state of the world leaves out forwarders that must wait, and ends nothing either.
func TestOpenConnectionsLastThroughPolicies(t *testing.T) {
	t.Parallel()
	for name, wholeState := range map[string]bool{"delta": false, "state of the world": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.wholeState = wholeState
			w.openConnections(t)
		})
	}
}

func (w *world) openConnections(t *testing.T) {
	backend := w.echoing("db")
	w.echoing("replica")
	w.allowAll()
	ports, caller := w.caller("caller", "{kind: MeshService, name: db, port: 5432}")
	eventually(t, "db", func() bool { return ask(ports[0]) == "db" })
	open := dialTalk(t, ports[0])
	must(t, open.says("hello"))
	before := map[*envoy]map[string]string{caller: caller.listeners(), backend: backend.listeners()}

	route := `{type: MeshTCPRoute, mesh: default, name: p, spec: {to: [{targetRef: {kind: MeshService, name: db}, rules: [{default: {backendRefs: [{kind: MeshService, name: %s, port: 5432}]}}]}]}}`
	w.apply(fmt.Sprintf(route, "replica"))
	eventually(t, "the route", func() bool { return ask(ports[0]) == "replica" })
	elsewhere := dialTalk(t, ports[0])
	must(t, elsewhere.says("to the replica"))
	w.apply(fmt.Sprintf(route, "db"))
	eventually(t, "the other route", func() bool { return ask(ports[0]) == "db" })
	w.remove("MeshTCPRoute", "p")

	w.apply("{type: MeshRetry, mesh: default, name: p, spec: {to: [{targetRef: {kind: Mesh}, default: {tcp: {maxConnectAttempt: 7}}}]}}")
	must(t, open.says("through a MeshRetry"))

	dir := t.TempDir()
	for n := range 2 {
		log := func(side string) string {
			return fmt.Sprintf(`{backends: [{type: File, file: {path: %s, format: {type: Plain, plain: "%s %d"}}}]}`, filepath.Join(dir, side), side, n)
		}
		w.apply(fmt.Sprintf("{type: MeshAccessLog, mesh: default, name: p, spec: {to: [{targetRef: {kind: Mesh}, default: %s}]}}", log("sent")))
		w.apply(fmt.Sprintf("{type: MeshAccessLog, mesh: default, name: q, spec: {targetRef: {kind: Dataplane, labels: {app: db}}, rules: [{default: %s}]}}", log("received")))
		for _, side := range []string{"sent", "received"} {
			eventually(t, "the log of what is "+side, func() bool {
				ask(ports[0])
				raw, _ := os.ReadFile(filepath.Join(dir, side))
				return strings.Contains(string(raw), fmt.Sprintf("%s %d\n", side, n))
			})
		}
		must(t, open.says("through a log"))
	}
	w.remove("MeshAccessLog", "p")
	w.remove("MeshAccessLog", "q")

	w.apply("{type: MeshTimeout, mesh: default, name: p, spec: {to: [{targetRef: {kind: Mesh}, default: {idleTimeout: 300ms}}]}}")
	w.apply("{type: MeshTimeout, mesh: default, name: q, spec: {targetRef: {kind: Dataplane, labels: {app: db}}, rules: [{default: {idleTimeout: 1h}}]}}")
	eventually(t, "the end of an idle connection", func() bool {
		c := dialTalk(t, ports[0])
		if c.says("hello") != nil {
			return false
		}
		must(t, c.SetReadDeadline(time.Now().Add(2*time.Second)))
		_, err := c.in.ReadByte()
		return err != nil && !os.IsTimeout(err)
	})
	// A replaced listener would end them after the drain time of 1 s.
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		must(t, open.says("still there"))
		must(t, elsewhere.says("still there"))
	}
	for e, was := range before {
		for name, state := range e.listeners() {
			if was[name] != state {
				t.Errorf("%s was %q, and is %q", name, was[name], state)
			}
		}
	}
	w.newForwarders(t, open, elsewhere)
	for e := range before {
		e.refusedNothing()
	}
}

// newForwarders checks outbounds that come while connections are open: the first connection of each gets what policies
// say, and what is in the listener until then is never used.
func (w *world) newForwarders(t *testing.T, open ...*openTalk) {
	w.echoing("late")
	w.apply(`{type: MeshTCPRoute, mesh: default, name: late, spec: {to: [{targetRef: {kind: MeshService, name: late}, rules: [{default: {backendRefs: [{kind: MeshService, name: replica, port: 5432}]}}]}]}}`)
	for range 3 {
		port := freePort(t)
		w.changeDataplane("caller", func(r *resources.Resource) {
			spec, err := resources.NewSpec(r.Type, bytes.Replace(r.Spec.JSON(), []byte(`"outbound":[`),
				fmt.Appendf(nil, `"outbound":[{"port":%d,"backendRef":{"kind":"MeshService","name":"late","port":5432}},`, port), 1))
			must(t, err)
			r.Spec = spec
		})
		start := time.Now()
		eventually(t, "an outbound that listens", func() bool {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		})
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it listens after %s: it waited for its forwarder", took)
		}
		if got := ask(port); got != "replica" {
			t.Errorf("%q answers on a new outbound, want the one of the route", got)
		}
		for _, c := range open {
			must(t, c.says("beside it"))
		}
	}
}

// openTalk is a TCP connection to an application that echoes lines.
type openTalk struct {
	net.Conn
	in *bufio.Reader
}

func dialTalk(t *testing.T, port int) *openTalk {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &openTalk{c, bufio.NewReader(c)}
}

// says reports why a line does not come back.
func (o *openTalk) says(line string) error {
	if err := o.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(o, line); err != nil {
		return err
	}
	got, err := o.in.ReadString('\n')
	if err == nil && !strings.HasSuffix(strings.TrimSpace(got), line) {
		err = fmt.Errorf("%q came back as %q", line, got)
	}
	return err
}
