package zone_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestImpostorIsRefused: a server of a service must have one of the service's identities, not just any of the mesh.
func TestImpostorIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("backend", "backend", answers("backend"))
	w.allowAll()
	service := `{type: MeshService, mesh: default, name: backend, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}},
  ports: [{name: http, port: 80, targetPort: main, appProtocol: http}], identities: [{type: SpiffeID, value: "spiffe://default.zone-1.mesh.local/workload/%s"}]}}`
	w.apply(fmt.Sprintf(service, "somebody-else"))
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "refused by the caller", func() bool {
		code, _ := plain(ports[0], "/")
		refused := false
		for _, n := range e.stats("cluster.*ssl.fail_verify_san") {
			refused = refused || n != "0"
		}
		return code == http.StatusServiceUnavailable && refused
	})
	w.apply(fmt.Sprintf(service, "backend"))
	eventually(t, "reachable as itself", ok(ports[0], "/"))
	e.refusedNothing()
}

// echoing runs a TCP application behind a proxy. It answers each line with its name and the line.
func (w *world) echoing(name string) *envoy {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(w.t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					_, _ = fmt.Fprintf(conn, "%s %s\n", name, lines.Text())
				}
			}()
		}
	}()
	w.t.Cleanup(func() { _ = l.Close(); <-done })
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %[1]s, labels: {app: %[1]s}, networking: {address: 127.0.0.1, inbound: [{name: main, port: %[2]d, servicePort: %[3]d}]}}
---
{type: MeshService, mesh: default, name: %[1]s, spec: {selector: {dataplaneLabels: {matchLabels: {app: %[1]s}}}, ports: [{port: 5432, targetPort: main}]}}`,
		name, freePort(w.t), l.Addr().(*net.TCPAddr).Port))
	return w.startEnvoy(zone.BootstrapConfig{Dataplane: name})
}

// ask sends a line to a TCP outbound and returns the first word of the answer.
func ask(port int) string {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), 2*time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = fmt.Fprintln(conn, "hello")
	answer, _ := bufio.NewReader(conn).ReadString('\n')
	name, _, _ := strings.Cut(answer, " ")
	return name
}

// TestTCPOutbound: connections reach the service, or the backends of a MeshTCPRoute, by weight.
func TestTCPOutbound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.echoing("db")
	w.echoing("replica")
	ports, e := w.caller("caller", "{kind: MeshService, name: db, port: 5432}")
	if got := ask(ports[0]); got != "" {
		t.Fatalf("%q answered without a permission", got)
	}
	w.allowAll()
	eventually(t, "db", func() bool { return ask(ports[0]) == "db" })
	route := `{type: MeshTCPRoute, mesh: default, name: split, spec: {to: [{targetRef: {kind: MeshService, name: db}, rules: [{default: {backendRefs: [
  {kind: MeshService, name: db, port: 5432, weight: %d}, {kind: MeshService, name: replica, port: 5432, weight: 1}]}}]}]}}`
	w.apply(fmt.Sprintf(route, 0))
	eventually(t, "replica", func() bool { return ask(ports[0]) == "replica" })
	w.apply(fmt.Sprintf(route, 1))
	shares := map[string]int{}
	eventually(t, "both", func() bool { shares[ask(ports[0])]++; return shares["db"] > 5 && shares["replica"] > 5 })
	e.refusedNothing()
}

// TestServiceOfSeveralZones: the proxies of the caller's own zone answer. If none of them is ready, those of the other
// zone do.
func TestServiceOfSeveralZones(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	one.handler("far", "backend", answers("far"))
	two.handler("near", "backend", answers("near"))
	one.apply(fmt.Sprintf(allowCaller, "zone-2"))
	two.allowAll()
	many := `{type: MeshMultiZoneService, mesh: default, name: many, spec: {selector: {meshService: {matchLabels: {kuma.io/display-name: backend}}}, ports: [{port: 80, appProtocol: http}]}}`
	for _, w := range []*world{one, two} {
		r := w.resource(many)
		delete(r.Labels, resources.LabelZone)
		r.Labels[resources.LabelOrigin] = resources.OriginGlobal
		w.put(r)
	}
	one.apply(fmt.Sprintf(`{type: ZoneIngress, name: ingress, networking: {address: 127.0.0.1, port: %d}}`, freePort(t)))
	ingress := one.startEnvoy(zone.BootstrapConfig{ZoneIngress: "ingress"})
	ports, e := two.caller("caller", "{kind: MeshMultiZoneService, name: many, port: 80}")
	eventually(t, "near", func() bool { _, body := plain(ports[0], "/"); return body == "near /" })
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	for range 10 {
		if _, body := plain(ports[0], "/"); body != "near /" {
			t.Errorf("answered: %q", body)
		}
	}
	near := two.store.Snapshot().Get(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "near"})
	next := near.Clone()
	spec, err := resources.NewSpec(resources.TypeDataplane,
		[]byte(strings.Replace(string(near.Spec.JSON()), `"name":"main"`, `"name":"main","state":"NotReady"`, 1)))
	must(t, err)
	next.Spec = spec
	two.put(next)
	eventually(t, "far", func() bool { _, body := plain(ports[0], "/"); return body == "far /" })
	ingress.refusedNothing()
	e.refusedNothing()
}

// TestZonesThatMayJoin: of the services with the labels of a MeshMultiZoneService, those of zones that the mesh operator
// does not list get none of its traffic, not even where nobody else can answer, and whatever they say of themselves.
// Once their zone is listed, they do.
func TestZonesThatMayJoin(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	one.handler("far", "backend", answers("far"))
	two.handler("near", "backend", answers("near"))
	one.apply(fmt.Sprintf(allowCaller, "zone-2"))
	two.allowAll()
	list := func(zones string) {
		for _, w := range []*world{one, two} {
			r := w.resource(`{type: MeshMultiZoneService, mesh: default, name: many, spec: {selector: {meshService: {matchLabels: {kuma.io/display-name: backend}, zones: ` +
				zones + `}}, ports: [{port: 80, appProtocol: http}]}}`)
			delete(r.Labels, resources.LabelZone)
			r.Labels[resources.LabelOrigin] = resources.OriginGlobal
			w.put(r)
		}
	}
	list("[zone-2]")
	one.apply(fmt.Sprintf(`{type: ZoneIngress, name: ingress, networking: {address: 127.0.0.1, port: %d}}`, freePort(t)))
	one.startEnvoy(zone.BootstrapConfig{ZoneIngress: "ingress"})
	// The far service is one that zone-2's clients reach by its own name.
	ports, e := two.caller("caller", "{kind: MeshMultiZoneService, name: many, port: 80}",
		"{kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/zone: zone-1}, port: 80}")
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	eventually(t, "the far service itself", func() bool { _, body := plain(ports[1], "/"); return body == "far /" })
	eventually(t, "near", func() bool { _, body := plain(ports[0], "/"); return body == "near /" })
	near := two.store.Snapshot().Get(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "near"}).Clone()
	spec, err := resources.NewSpec(resources.TypeDataplane,
		[]byte(strings.Replace(string(near.Spec.JSON()), `"name":"main"`, `"name":"main","state":"NotReady"`, 1)))
	must(t, err)
	near.Spec = spec
	two.put(near)
	eventually(t, "nobody to answer", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusServiceUnavailable })
	for range 20 {
		if _, body := plain(ports[0], "/"); body == "far /" {
			t.Fatal("a zone that may not join answered")
		}
	}
	list("[zone-1, zone-2]")
	eventually(t, "far, which may join now", func() bool { _, body := plain(ports[0], "/"); return body == "far /" })
	e.refusedNothing()
}

// TestEnvoyTakesEveryConf: a real Envoy accepts the content of the golden files.
func TestEnvoyTakesEveryConf(t *testing.T) {
	t.Parallel()
	for name, listeners := range map[string]int{"http": 3, "tcp": 2, "ingress": 1} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			text, err := os.ReadFile(filepath.Join("xds", "testdata", "network", name+".yaml"))
			must(t, err)
			w.apply(strings.NewReplacer(
				"address: 192.0.2.", "address: 127.0.0.", "port: 80, servicePort",
				fmt.Sprintf("port: %d, servicePort", freePort(t)),
				"{port: 10001,", fmt.Sprintf("{port: %d,", freePort(t)), "{port: 10002,", fmt.Sprintf("{port: %d,", freePort(t)),
				"127.0.0.9, port: 10000", fmt.Sprintf("127.0.0.9, port: %d", freePort(t)), "192.0.2.9, port: 10000",
				fmt.Sprintf("127.0.0.9, port: %d", freePort(t)),
			).Replace(string(text)))
			cfg := zone.BootstrapConfig{Dataplane: "caller"}
			if name == "ingress" {
				cfg = zone.BootstrapConfig{ZoneIngress: "caller"}
			}
			e := w.startEnvoy(cfg)
			eventually(t, "its listeners", func() bool {
				return e.stats("listener_manager.total_listeners_active")["listener_manager.total_listeners_active"] == fmt.Sprint(listeners)
			})
			e.refusedNothing()
		})
	}
}
