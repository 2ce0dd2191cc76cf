package zone_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestGatewayTCP: connections of a TCP listener go where a MeshTCPRoute says, and nowhere without one.
func TestGatewayTCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	application, connections := speaksFirst(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: %d, protocol: tcp}]}}
---
{type: MeshService, mesh: default, name: backend, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{name: tcp, port: 80, targetPort: main, appProtocol: tcp}]}}`, freePort(t), application))
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	port := freePort(t)
	e := w.gateway(fmt.Sprintf("{port: %d, protocol: TCP}", port))
	eventually(t, "the insight", func() bool { return strings.Contains(w.gatewayProblems(), "no MeshTCPRoute routes") })
	if c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second); err == nil {
		_ = c.Close()
		t.Error("the port is open, and leads nowhere")
	}
	w.apply(`{type: MeshTCPRoute, mesh: default, name: tcp, spec: {targetRef: {kind: MeshGateway, name: edge}, to: [{targetRef: {kind: Mesh}, rules: [{default: {backendRefs: [{kind: MeshService, name: backend}]}}]}]}}`)
	eventually(t, "an answer", func() bool { return talks(dialTCP(port)) == nil })
	if connections() == 0 {
		t.Error("nobody reached the application")
	}
	e.refusedNothing()
}

// TestGatewayAcrossZones: a gateway sends to a service of another zone, through that zone's ingress.
func TestGatewayAcrossZones(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	one.service("backend")
	one.apply(fmt.Sprintf(`{type: ZoneIngress, name: ingress, networking: {address: 127.0.0.1, port: %d}}`, freePort(t)))
	one.startEnvoy(zone.BootstrapConfig{ZoneIngress: "ingress"})
	port := freePort(t)
	e := two.gateway(fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	two.route("web", "", "{default: {backendRefs: [{kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/zone: zone-1}}]}}")
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	two.gets(port, "a.example", "/", http.StatusForbidden, "RBAC")
	one.apply(fmt.Sprintf(allowCaller, "zone-2"))
	two.gets(port, "a.example", "/x", http.StatusOK, "application /x")
	e.refusedNothing()
}

// TestGatewayInANamespace: the tags of a Dataplane are its owner's to write, so they alone do not make its proxy one of
// a gateway, with the gateway's certificates.
func TestGatewayInANamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.service("backend")
	w.allowAll()
	port := freePort(t)
	w.listen(fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	w.route("web", "", to("/", "backend"))
	w.apply(`{type: Dataplane, mesh: default, namespace: shop, name: edge-1, labels: {kuma.io/workload: caller}, networking: {address: 127.0.0.1, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}}}`)
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "edge-1", Namespace: "shop", Gateway: true})
	eventually(t, "the proxy is there", func() bool {
		return e.stats("listener_manager.lds.update_success")["listener_manager.lds.update_success"] > "0"
	})
	if code, _ := askGateway(outsider(), "http", port, "a.example", "/"); code != 0 {
		t.Errorf("it serves the gateway: %d", code)
	}
	w.apply(fmt.Sprintf("{type: MeshGateway, mesh: default, name: edge, selectors: [{match: {kuma.io/service: edge, k8s.kuma.io/namespace: shop}}], conf: {listeners: [{port: %d, protocol: HTTP}]}}", port))
	w.gets(port, "a.example", "/", http.StatusOK, "application")
	e.refusedNothing()
}

// TestGatewayBesideAnEgress: a listener of the gateway on a place that the proxy has for something else is told of, and
// costs the proxy nothing else.
func TestGatewayBesideAnEgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.service("backend")
	w.allowAll()
	port, way, redirected := freePort(t), freePort(t), freePort(t)
	w.apply(`{type: MeshExternalService, mesh: default, name: bank, spec: {match: {port: 443}, endpoints: [{address: 192.0.2.1, port: 443}]}}`)
	w.listen(fmt.Sprintf("{port: %d, protocol: HTTP}", way), fmt.Sprintf("{port: %d, protocol: HTTP}", redirected),
		fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	w.route("web", "", to("/", "backend"))
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: edge-1, labels: {kuma.io/workload: caller}, networking: {address: 127.0.0.1, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}, transparentProxying: {redirectPortOutbound: %d},
  listeners: [{type: ZoneEgress, port: %d, name: way}]}}`, redirected, way))
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "edge-1", Gateway: true})
	w.gets(port, "a.example", "/", http.StatusOK, "application")
	eventually(t, "the insight names both", func() bool {
		text := w.insightOf("edge-1")
		return strings.Contains(text, "conf.listeners[0]: an inbound or a listener of the Dataplane") &&
			strings.Contains(text, "conf.listeners[1]: connections are redirected")
	})
	e.refusedNothing()
}

func dialTCP(port int) (net.Conn, error) {
	return net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), 5*time.Second)
}

// talks speaks to the application of speaksFirst, and ends the connection.
func talks(conn net.Conn, err error) error {
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintln(conn, "hello"); err != nil {
		return err
	}
	want := banner + "echo hello\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("%q", got)
	}
	return nil
}
