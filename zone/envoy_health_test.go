package zone_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/causeway-mesh/causeway/zone"
)

// TestHealthChecks: a MeshHealthCheck has callers ask each endpoint, in the protocol of its port; one that fails gets
// no requests until it answers again.
func TestHealthChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var sick atomic.Bool
	w.handler("a", "backend", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" && (sick.Load() || r.Header.Get("X-Check") != "yes" || strings.Join(r.Header.Values("X-Added"), " ") != "one two") {
			rw.WriteHeader(http.StatusTeapot)
			return
		}
		if r.URL.Path == "/healthz" {
			rw.WriteHeader(http.StatusNoContent)
			return
		}
		_, _ = io.WriteString(rw, "a")
	})
	w.handler("b", "backend", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			rw.WriteHeader(http.StatusNoContent)
			return
		}
		_, _ = io.WriteString(rw, "b")
	})
	w.endpoint("lines", "tcp", fooBar(t, &sick))
	states := health.NewServer()
	w.endpoint("streams", "grpc", healthOver(t, states))
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}", "{kind: MeshService, name: lines}",
		"{kind: MeshService, name: streams}")
	events := filepath.Join(t.TempDir(), "events")
	w.apply(`{type: MeshHealthCheck, mesh: default, name: health, spec: {to: [{targetRef: {kind: Mesh}, default: {
  interval: 100ms, timeout: 2s, unhealthyThreshold: 1, healthyThreshold: 1, noTrafficInterval: 100ms, reuseConnection: false,
  eventLogPath: ` + events + `, alwaysLogHealthCheckFailures: true,
  http: {path: /healthz, expectedStatuses: [204], requestHeadersToAdd: {
  set: [{name: X-Check, value: "yes"}], add: [{name: X-Added, value: one}, {name: X-Added, value: two}]}},
  tcp: {send: Zm9v, receive: [YmFy]}, grpc: {serviceName: orders}}}]}}`)
	// failed are the services with an endpoint that fails its checks.
	failed := func() string {
		found := map[string]bool{}
		for line := range strings.Lines(e.get("/clusters")) {
			for _, name := range []string{"backend", "lines", "streams"} {
				if strings.Contains(line, "_"+name+"_") && strings.Contains(line, "health_flags::/failed_active_hc") {
					found[name] = true
				}
			}
		}
		return fmt.Sprint(found)
	}
	states.SetServingStatus("orders", healthgrpc.HealthCheckResponse_SERVING)
	checked := func() bool {
		return strings.Contains(e.get("/config_dump?resource=dynamic_active_clusters"), `"path": "/healthz"`) &&
			failed() == "map[]"
	}
	eventually(t, "all to be healthy", checked)
	answersOf := func() map[string]int {
		got := map[string]int{}
		for range 12 {
			_, body := plain(ports[0], "/")
			got[body]++
		}
		return got
	}
	eventually(t, "both endpoints to answer", func() bool { return len(answersOf()) == 2 })

	sick.Store(true)
	states.SetServingStatus("orders", healthgrpc.HealthCheckResponse_NOT_SERVING)
	eventually(t, "one endpoint of each to fail",
		func() bool { return failed() == "map[backend:true lines:true streams:true]" })
	if got := answersOf(); got["b"] != 12 {
		t.Errorf("while a fails its checks, requests go to %v", got)
	}
	soon(t, func() error {
		raw, err := os.ReadFile(events)
		for _, want := range []string{`"eject_unhealthy_event"`, `"health_check_failure_event"`} {
			if err == nil && !strings.Contains(string(raw), want) {
				err = fmt.Errorf("no %s in %.300s", want, raw)
			}
		}
		return err
	})
	sick.Store(false)
	states.SetServingStatus("orders", healthgrpc.HealthCheckResponse_SERVING)
	eventually(t, "all to be healthy again", func() bool { return checked() && len(answersOf()) == 2 })

	w.apply(`{type: MeshHealthCheck, mesh: default, name: health, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {disabled: true}, grpc: {disabled: true}, tcp: {disabled: true}}}]}}`)
	eventually(t, "nobody to be asked", func() bool {
		return !strings.Contains(e.get("/config_dump?resource=dynamic_active_clusters"), "health_checks")
	})
	e.refusedNothing()
}

// endpoint is a service of a protocol with one Dataplane, whose application listens on servicePort.
func (w *world) endpoint(name, protocol string, servicePort int) {
	w.t.Helper()
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %s, labels: {app: %[1]s}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: %d, protocol: %s}]}}
---
{type: MeshService, mesh: default, name: %[1]s, spec: {selector: {dataplaneLabels: {matchLabels: {app: %[1]s}}}, ports: [{name: main, port: 80, targetPort: main, appProtocol: %[4]s}]}}`,
		name, freePort(w.t), servicePort, protocol))
	w.startEnvoy(zone.BootstrapConfig{Dataplane: name})
}

// fooBar is an application that answers foo with bar while it is well, and with something else while it is sick.
func fooBar(t *testing.T, sick *atomic.Bool) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := io.ReadFull(conn, make([]byte, 3)); err != nil {
					return
				}
				answer := "bar"
				if sick.Load() {
					answer = "baz"
				}
				_, _ = io.WriteString(conn, answer)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// healthOver serves grpc.health.v1.
func healthOver(t *testing.T, states *health.Server) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := grpc.NewServer()
	healthgrpc.RegisterHealthServer(server, states)
	t.Cleanup(server.Stop)
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().(*net.TCPAddr).Port
}

// TestHealthLogThatCannotBeOpened: the proxy checks without it, says so, and is behind for no other policy.
func TestHealthLogThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("a", "backend", func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "a") })
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	w.apply(`{type: MeshHealthCheck, mesh: default, name: health, spec: {to: [{targetRef: {kind: Mesh}, default: {interval: 1s, eventLogPath: /there/is/no/such/folder}}]}}`)
	soon(t, func() error {
		if problems := w.problems("caller"); !strings.Contains(problems, "kri_mhc_default_zone-1__health_: eventLogPath") {
			return fmt.Errorf("the insight says %s", problems)
		}
		if !strings.Contains(e.get("/config_dump?resource=dynamic_active_clusters"), "health_checks") {
			return fmt.Errorf("nobody is asked")
		}
		for _, one := range w.proxies.SyncStatuses() {
			if one.Behind {
				return fmt.Errorf("%s is behind: %s", one.Dataplane, one.Reason)
			}
		}
		_, body := plain(ports[0], "/")
		if body != "a" {
			return fmt.Errorf("the answer is %q", body)
		}
		return nil
	})
}
