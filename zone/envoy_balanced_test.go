package zone_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// balancer is a load balancer of TCP. Connections stay where they were led.
type balancer struct {
	port int
	to   atomic.Int64 // the port of new connections
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	b := &balancer{port: l.Addr().(*net.TCPAddr).Port}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { b.lead(t.Context(), in) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return b
}

// lead passes bytes on until one side closes, or the test ends.
func (b *balancer) lead(ctx context.Context, in net.Conn) {
	defer in.Close()
	out, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", b.to.Load()))
	if err != nil {
		return
	}
	defer out.Close()
	defer context.AfterFunc(ctx, func() { _ = in.Close(); _ = out.Close() })()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}

// slow runs a service that takes a moment for each request, in one version of HTTP.
func (w *world) slow(name, protocol string) {
	w.t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(protocol == "http")
	srv.Config.Protocols.SetUnencryptedHTTP2(protocol == "http2")
	srv.Start()
	w.t.Cleanup(srv.Close)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %[1]s, labels: {app: %[1]s}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %[2]d, servicePort: %[3]d, protocol: %[4]s}]}}
---
{type: MeshService, mesh: default, name: %[1]s, spec: {selector: {dataplaneLabels: {matchLabels: {app: %[1]s}}}, ports: [{name: main, port: 80, targetPort: main, appProtocol: %[4]s}]}}`,
		name, freePort(w.t), srv.Listener.Addr().(*net.TCPAddr).Port, protocol))
	w.startEnvoy(zone.BootstrapConfig{Dataplane: name})
}

// TestIngressLeavesItsBalancer: two ingresses are behind one load balancer, which leads new connections to those that stay.
// When the ZoneIngress of one goes, other zones leave their connections through it, in each version of HTTP, before its
// Envoy ends, and no request is lost. So it is where they check its health. When another comes, none is lost either.
func TestIngressLeavesItsBalancer(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	b := newBalancer(t)
	at := map[string]int{}
	come := func(name string) *envoy {
		at[name] = freePort(t)
		one.apply(fmt.Sprintf(`{type: ZoneIngress, name: %s, networking: {address: 127.0.0.1, port: %d, advertisedAddress: 127.0.0.1, advertisedPort: %d}}`,
			name, at[name], b.port))
		return one.startEnvoy(zone.BootstrapConfig{ZoneIngress: name})
	}
	first, second := come("first"), come("second")
	b.to.Store(int64(at["first"]))
	one.slow("old", "http")
	one.slow("new", "http2")
	two.apply(nothingUnasked)
	two.apply(`{type: MeshHealthCheck, mesh: default, name: health, spec: {to: [{targetRef: {kind: MeshService, labels: {kuma.io/display-name: old}}, default: {interval: 1s, timeout: 5s, http: {path: /}}}]}}`)
	ports, e := two.caller("caller", `{kind: MeshService, labels: {kuma.io/display-name: old, kuma.io/zone: zone-1}}`,
		`{kind: MeshService, labels: {kuma.io/display-name: new, kuma.io/zone: zone-1}}`)
	one.apply(fmt.Sprintf(allowCaller, "zone-2"))
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	for _, port := range ports {
		eventually(t, "reachable", ok(port, "/"))
	}

	stop, calls := make(chan struct{}), &calls{}
	var callers sync.WaitGroup
	for _, port := range ports {
		for range 4 {
			callers.Go(func() { calls.run(port, stop) })
		}
	}
	t.Cleanup(sync.OnceFunc(func() { close(stop); callers.Wait() }))
	more := func() {
		t.Helper()
		least := calls.done.Load() + 100
		eventually(t, "more calls", func() bool { return calls.done.Load() >= least })
	}
	leave := func(name string) {
		for w, name := range map[*world]string{one: name, two: hashing.Name("", name, "zone-1", "")} {
			_, err := w.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Delete: resources.Key{Type: resources.TypeZoneIngress, Name: name}}}})
			must(t, err)
		}
	}
	more()
	eventually(t, "the health of one of the services to be checked", func() bool {
		checks := e.stats("health_check.success")
		return len(checks) == 1 && slices.Collect(maps.Values(checks))[0] != "0"
	})
	if n := passing(first); n < 2 {
		t.Fatalf("%d connections pass by the first ingress", n)
	}
	listens(second)
	b.to.Store(int64(at["second"]))
	leave("first")
	gone := time.Now()
	eventually(t, "the connections to leave the first ingress", func() bool {
		return passing(first) == 0 || time.Since(gone) > 5*time.Second // its listener goes 10 s after its ZoneIngress
	})
	if n := passing(first); n > 0 {
		t.Errorf("%d connections pass by the first ingress still", n)
	}
	first.kill()
	more()
	third := come("third")
	listens(third)
	b.to.Store(int64(at["third"]))
	one.tell(two)
	eventually(t, "connections by the third ingress", func() bool { return passing(third) > 0 })
	more()
	if lost := calls.lost(); len(lost) > 0 {
		t.Errorf("%d of %d calls failed: %v", len(lost), calls.done.Load(), lost)
	}
	e.refusedNothing()
}

// listens waits until an ingress has its listener.
func listens(e *envoy) {
	e.t.Helper()
	const active = "listener_manager.total_listeners_active"
	eventually(e.t, "an ingress to listen", func() bool { return e.stats(active)[active] == "1" })
}

// passing returns how many connections pass by an ingress, which may not listen yet.
func passing(e *envoy) (n int) {
	for _, text := range e.stats("^listener.zone_ingress.downstream_cx_active$") {
		_, err := fmt.Sscan(text, &n)
		must(e.t, err)
	}
	return n
}

// calls are the calls of several callers.
type calls struct {
	done atomic.Int64
	mu   sync.Mutex
	bad  []string
}

// run calls an outbound, again and again, on connections that are kept.
func (c *calls) run(port int, stop <-chan struct{}) {
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-stop:
			return
		default:
		}
		resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
		text := fmt.Sprint(err)
		if err == nil {
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			text = fmt.Sprint(resp.StatusCode, " ", string(body))
		}
		if err != nil || resp.StatusCode != http.StatusOK {
			c.mu.Lock()
			c.bad = append(c.bad, text)
			c.mu.Unlock()
		}
		c.done.Add(1)
	}
}

// lost returns what failed.
func (c *calls) lost() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bad
}
