package zone_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// policy writes a policy for the gateway edge.
func (w *world) policy(t resources.Type, to, conf string) {
	w.t.Helper()
	w.apply(fmt.Sprintf("{type: %s, mesh: default, name: p, spec: {targetRef: {kind: MeshGateway, name: edge}, to: [{targetRef: %s, default: %s}]}}", t, to, conf))
}

const (
	toMesh    = "{kind: Mesh}"
	toBackend = "{kind: MeshService, name: backend}"
)

// TestGatewayPolicies shows each policy of what a proxy sends in the real Envoy of a gateway. None of them moves a
// listener.
func TestGatewayPolicies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	var flaky atomic.Int64
	instance := func(name string) {
		w.handler(name, "backend", func(out http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/slow"):
				time.Sleep(600 * time.Millisecond)
			case strings.HasSuffix(r.URL.Path, "/flaky") && flaky.Add(1)%3 != 0:
				out.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = fmt.Fprint(out, name)
		})
	}
	instance("backend-1")
	instance("backend-2")
	port := freePort(t)
	e := w.gateway(fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	w.route("web", "", to("/", "backend"))
	w.route("patient", "", to("/patient", "backend"))
	w.gets(port, "a.example", "/", http.StatusOK, "backend-")
	w.gets(port, "a.example", "/patient/slow", http.StatusOK, "backend-")
	before := e.listeners()

	w.policy(resources.TypeMeshTimeout, toMesh, "{connectionTimeout: 3s, http: {requestTimeout: 200ms}}")
	w.gets(port, "a.example", "/slow", http.StatusGatewayTimeout, "")
	w.gets(port, "a.example", "/patient/slow", http.StatusGatewayTimeout, "")
	w.apply("{type: MeshTimeout, mesh: default, name: patient, spec: {targetRef: {kind: MeshGateway, name: edge}, to: [{targetRef: {kind: MeshHTTPRoute, name: patient}, default: {http: {requestTimeout: 5s}}}]}}")
	w.gets(port, "a.example", "/patient/slow", http.StatusOK, "backend-")
	w.gets(port, "a.example", "/slow", http.StatusGatewayTimeout, "")
	// What follows has nothing to do with time.
	w.policy(resources.TypeMeshTimeout, toMesh, "{connectionTimeout: 3s, http: {requestTimeout: 15s}}")
	w.gets(port, "a.example", "/slow", http.StatusOK, "backend-")

	w.policy(resources.TypeMeshRetry, toBackend, "{http: {numRetries: 5, retryOn: [5xx]}}")
	eventually(t, "retries", func() bool {
		return strings.Contains(e.get("/config_dump?resource=dynamic_route_configs"), `"retry_on": "5xx"`)
	})
	for range 5 {
		if code, body := askGateway(outsider(), "http", port, "a.example", "/flaky"); code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
	}
	w.policy(resources.TypeMeshLoadBalancingStrategy, toBackend, "{loadBalancer: {type: RingHash, ringHash: {hashPolicies: [{type: Header, header: {name: x-user}}]}}}")
	eventually(t, "the hash policy", func() bool { return strings.Contains(e.get("/config_dump?resource=dynamic_route_configs"), `"x-user"`) })
	seen := map[string]string{}
	for user := range 20 {
		name := fmt.Sprint("user-", user)
		for range 3 {
			_, body := askGateway(outsider(), "http", port, "a.example", "/", "X-User", name)
			if seen[name] != "" && seen[name] != body {
				t.Errorf("%s went to %s, then %s", name, seen[name], body)
			}
			seen[name] = body
		}
	}
	if all := slices.Compact(slices.Sorted(maps.Values(seen))); len(all) != 2 {
		t.Errorf("20 users went to %v only", all)
	}
	w.policy(resources.TypeMeshCircuitBreaker, toBackend, "{connectionLimits: {maxConnections: 77}}")
	eventually(t, "the limit", func() bool { return strings.Contains(e.get("/clusters"), "default_priority::max_connections::77") })
	w.policy(resources.TypeMeshHealthCheck, toBackend, "{interval: 100ms, timeout: 1s, unhealthyThreshold: 1, healthyThreshold: 1, http: {path: /health}}")
	eventually(t, "health checks", func() bool {
		for _, n := range e.stats("health_check.success$") {
			if n != "0" {
				return true
			}
		}
		return false
	})
	w.gets(port, "a.example", "/", http.StatusOK, "backend-")
	if after := e.listeners(); !maps.Equal(before, after) {
		t.Errorf("policies moved listeners: %v, then %v", before, after)
	}
	e.refusedNothing()
}

// TestGatewaySharesHaveTheirOwnConfs: the services of one weighted rule keep their shares, and each has its own timeouts.
func TestGatewaySharesHaveTheirOwnConfs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	for _, name := range []string{"backend", "other"} {
		w.handler(name, name, func(out http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				time.Sleep(4 * time.Second) // far beyond the timeout, which in turn is long for an Envoy that is held up
			}
			_, _ = fmt.Fprint(out, name)
		})
	}
	port := freePort(t)
	e := w.gateway(fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	w.route("web", "", "{matches: [{path: {type: PathPrefix, value: /}}], default: {backendRefs: [{kind: MeshService, name: backend, weight: 30}, {kind: MeshService, name: other, weight: 10}]}}")
	w.gets(port, "a.example", "/", http.StatusOK, "")
	before := e.listeners()
	w.policy(resources.TypeMeshTimeout, "{kind: MeshService, name: other}", "{http: {requestTimeout: 1s}}")
	eventually(t, "the parts", func() bool {
		return strings.Contains(e.get("/config_dump?resource=dynamic_route_configs"), `"numerator": 750000`)
	})
	const requests = 400
	got, client := map[string]int{}, outsider()
	for range requests {
		_, body := askGateway(client, "http", port, "a.example", "/")
		got[body]++
	}
	if got["backend"]+got["other"] != requests || got["other"] < requests/4-50 || got["other"] > requests/4+50 {
		t.Errorf("shares of 3 and 1: %v", got)
	}
	answers := make(chan string, 40)
	for range cap(answers) {
		go func() {
			code, body := askGateway(client, "http", port, "a.example", "/slow")
			if code == http.StatusGatewayTimeout {
				body = "timeout"
			}
			answers <- body
		}()
	}
	clear(got)
	for range cap(answers) {
		got[<-answers]++
	}
	if got["timeout"] == 0 || got["backend"] == 0 || got["timeout"]+got["backend"] != cap(answers) {
		t.Errorf("only what goes to the other service has its timeout: %v", got)
	}
	if after := e.listeners(); !maps.Equal(before, after) {
		t.Errorf("the policy moved listeners: %v, then %v", before, after)
	}
	if problems := w.gatewayProblems(); problems != "" {
		t.Error(problems)
	}
	e.refusedNothing()
}

// TestGatewayIsObserved shows a MeshAccessLog, a MeshTrace and a MeshMetric in the real Envoy of a gateway.
func TestGatewayIsObserved(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t), startCollector(t)
	w.allowAll()
	w.handler("backend", "backend", answers("backend"))
	port, metrics, admin := freePort(t), freePort(t), freePort(t)
	w.listen(fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	w.apply(`{type: Dataplane, mesh: default, name: edge-1, labels: {kuma.io/workload: caller}, networking: {address: 127.0.0.1, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}}}`)
	bootstrap, err := zone.Bootstrap(zone.BootstrapConfig{Dataplane: "edge-1", Gateway: true, XDSAddress: w.address,
		AdminAddress: fmt.Sprintf("127.0.0.1:%d", admin)})
	must(t, err)
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	must(t, os.WriteFile(file, bootstrap, 0o600))
	e := w.runEnvoy(file)
	w.route("web", "", to("/", "backend"))
	w.gets(port, "a.example", "/", http.StatusOK, "backend")

	log := filepath.Join(t.TempDir(), "log")
	logs := fmt.Sprintf("{backends: [{type: File, file: {path: %s}}]}", log)
	w.policy(resources.TypeMeshAccessLog, toBackend, logs)
	eventually(t, "the insight", func() bool {
		return strings.Contains(w.gatewayProblems(), "kri_mal_default_zone-1__p_: a gateway's HTTP listener logs only by items for kind Mesh")
	})
	w.policy(resources.TypeMeshAccessLog, toMesh, logs)
	soon(t, func() error {
		askGateway(outsider(), "http", port, "a.example", "/hello")
		for _, line := range logged(log) {
			if strings.Contains(line, "default OUTBOUND caller => kri_msvc_default_zone-1__backend_http \"GET /hello HTTP/1.1\" 200") {
				return nil
			}
		}
		return fmt.Errorf("no such line in %q", logged(log))
	})
	w.apply(fmt.Sprintf("{type: MeshTrace, mesh: default, name: p, spec: {targetRef: {kind: MeshGateway, name: edge}, default: {backends: [{type: OpenTelemetry, openTelemetry: {endpoint: %q}}], tags: [{name: env, literal: edge}]}}}", c.address))
	soon(t, func() error {
		askGateway(outsider(), "http", port, "a.example", "/")
		for _, s := range c.taken() {
			if s.service == "caller" && s.attributes["env"] == "edge" {
				return nil
			}
		}
		return fmt.Errorf("no span")
	})
	w.apply(fmt.Sprintf("{type: MeshMetric, mesh: default, name: p, spec: {targetRef: {kind: MeshGateway, name: edge}, default: {backends: [{type: Prometheus, prometheus: {port: %d}}]}}}", metrics))
	soon(t, func() error {
		m, err := scrape(outsider(), fmt.Sprintf("http://127.0.0.1:%d/metrics", metrics))
		if err == nil && m["envoy_http_downstream_rq_xx"] == 0 {
			err = fmt.Errorf("no requests counted in %d metrics", len(m))
		}
		return err
	})
	e.refusedNothing()
}

// TestProducersBreakerOnAGateway is seed 004's example: the owner of a service limits what a gateway may ask of it, and
// cannot route to it.
func TestProducersBreakerOnAGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	w.service("backend")
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, namespace: shop, name: frontend, labels: {app: frontend}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: 9, protocol: http}]}}
---
{type: MeshService, mesh: default, namespace: shop, name: frontend, spec: {selector: {dataplaneLabels: {matchLabels: {app: frontend}}}, ports: [{name: http, port: 80, targetPort: main, appProtocol: http}]}}`, freePort(t)))
	port := freePort(t)
	e := w.gateway(fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	w.route("web", "", to("/", "backend")+", {matches: [{path: {type: PathPrefix, value: /shop}}], default: {backendRefs: [{kind: MeshService, name: frontend, namespace: shop}]}}")
	w.apply("{type: MeshCircuitBreaker, mesh: default, namespace: shop, name: p, labels: {kuma.io/policy-role: producer}, spec: {targetRef: {kind: MeshGateway, name: edge}, to: [{targetRef: {kind: MeshService, name: frontend, namespace: shop}, default: {connectionLimits: {maxConnections: 78}}}, {targetRef: {kind: MeshService, name: backend}, default: {connectionLimits: {maxConnections: 78}}}]}}")
	// No write stores such a route; a store may have one.
	w.apply("{type: MeshHTTPRoute, mesh: default, namespace: shop, name: mine, labels: {kuma.io/policy-role: producer}, spec: {targetRef: {kind: MeshGateway, name: edge}, to: [{targetRef: {kind: Mesh}, rules: [{matches: [{path: {type: PathPrefix, value: /mine}}], default: {backendRefs: [{kind: MeshService, name: frontend}]}}]}]}}")
	limits := func(service string) string {
		for line := range strings.Lines(e.get("/clusters")) {
			if strings.Contains(line, service) && strings.Contains(line, "default_priority::max_connections::") {
				return strings.TrimSpace(line[strings.LastIndex(line, ":")+1:])
			}
		}
		return ""
	}
	eventually(t, "the limit", func() bool { return limits("shop_frontend") == "78" && limits("__backend") != "" })
	if other := limits("__backend"); other == "78" {
		t.Errorf("the producer's limit of another's service: %q", other)
	}
	var routes string
	eventually(t, "the routes", func() bool {
		routes = e.get("/config_dump?resource=dynamic_route_configs")
		return strings.Contains(routes, "/shop")
	})
	if strings.Contains(routes, "/mine") {
		t.Errorf("a route of a namespace on the gateway: %s", routes)
	}
	w.gets(port, "a.example", "/mine", http.StatusOK, "application")
	e.refusedNothing()
}
