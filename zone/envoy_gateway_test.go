package zone_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// secretOf reads a named secret of the zone, sealed in its store.
func (w *world) secretOf(of *resources.Resource, s *resources.DataSource) ([]byte, error) {
	return w.keeper.GetNamed(context.Background(), secrets.Named{Mesh: of.Mesh, Namespace: of.HomeNamespace(),
		Name: s.Secret})
}

// gateway runs the proxy of the MeshGateway edge, whose identity allowAll admits. Its listeners are given.
func (w *world) gateway(listeners ...string) *envoy {
	w.t.Helper()
	w.listen(listeners...)
	w.apply(`{type: Dataplane, mesh: default, name: edge-1, labels: {kuma.io/workload: caller}, networking: {address: 127.0.0.1, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}}}`)
	return w.startEnvoy(zone.BootstrapConfig{Dataplane: "edge-1", Gateway: true})
}

// listen writes the MeshGateway edge.
func (w *world) listen(listeners ...string) {
	w.t.Helper()
	w.apply(fmt.Sprintf("{type: MeshGateway, mesh: default, name: edge, selectors: [{match: {kuma.io/service: edge}}], conf: {listeners: [%s]}}",
		strings.Join(listeners, ", ")))
}

// route writes a MeshHTTPRoute for the gateway.
func (w *world) route(name, more, rules string) {
	w.t.Helper()
	w.apply(fmt.Sprintf("{type: MeshHTTPRoute, mesh: default, name: %s, spec: {targetRef: {kind: MeshGateway, name: edge}, to: [{targetRef: {kind: Mesh}%s, rules: [%s]}]}}",
		name, more, rules))
}

// to is a rule that sends a path prefix to a service.
func to(prefix, service string) string {
	return fmt.Sprintf("{matches: [{path: {type: PathPrefix, value: %s}}], default: {backendRefs: [{kind: MeshService, name: %s}]}}",
		prefix, service)
}

// askGateway sends a request to a host on a port of this machine, with a path that is not changed on the way.
func askGateway(c *http.Client, scheme string, port int, host, path string, headers ...string) (int, string) {
	req := &http.Request{Method: http.MethodGet, Host: host, Header: http.Header{},
		URL: &url.URL{Scheme: scheme, Host: fmt.Sprintf("127.0.0.1:%d", port), Opaque: path}}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header[headers[i]] = append(req.Header[headers[i]], headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b) + resp.Header.Get("Location")
}

func outsider() *http.Client {
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// gets asks until the answer has the status and the body.
func (w *world) gets(port int, host, path string, status int, body string) {
	w.t.Helper()
	var code int
	var answer string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if code, answer = askGateway(outsider(), "http", port, host, path); code == status && strings.HasPrefix(answer, body) {
			return
		}
	}
	w.t.Fatalf("%s%s: %d %q, want %d %q", host, path, code, answer, status, body)
}

// gatewayProblems returns what the insight of the gateway's proxy says of it.
func (w *world) gatewayProblems() string {
	key := resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: "edge-1"}
	r := w.status.Snapshot().Get(key)
	if r == nil {
		return ""
	}
	spec, err := resources.SpecAs[meshpb.DataplaneInsight](r)
	must(w.t, err)
	return spec.GetMetadata().GetFields()["problems"].GetStructValue().GetFields()[resources.ProblemGateway].GetStringValue()
}

// TestGatewayServesHTTP: a client outside of the mesh reaches a service through a gateway's listener and a route, by the
// permission for the gateway's identity. Routes move no listener.
func TestGatewayServesHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("backend", "backend", answers("backend"))
	w.handler("other", "other", answers("other"))
	port := freePort(t)
	e := w.gateway(fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	w.gets(port, "a.example", "/", http.StatusNotFound, "")
	before := e.listeners()
	w.route("web", "", to("/", "backend"))
	w.gets(port, "a.example", "/", http.StatusForbidden, "RBAC")
	w.allowAll()
	w.gets(port, "a.example", "/x", http.StatusOK, "backend /x")
	w.route("web", "", to("/", "backend")+", "+to("/other", "other"))
	w.gets(port, "a.example", "/other/x", http.StatusOK, "other /other/x")
	w.gets(port, "a.example:8080", "/others", http.StatusOK, "backend /others")
	w.remove(resources.TypeMeshHTTPRoute, "web")
	w.gets(port, "a.example", "/", http.StatusNotFound, "")
	if after := e.listeners(); !maps.Equal(before, after) {
		t.Errorf("routes moved listeners: %v, then %v", before, after)
	}
	w.remove(resources.TypeMeshGateway, "edge")
	eventually(t, "no listener without a gateway", func() bool {
		code, _ := askGateway(outsider(), "http", port, "a.example", "/")
		return code == 0
	})
	eventually(t, "the insight", func() bool { return strings.Contains(w.gatewayProblems(), "no MeshGateway selects") })
	e.refusedNothing()
}

// TestGatewayBelievesNobody: no spelling of the header with a client's identity gets through, nor do Envoy's own
// headers, and paths mean the same to routes and services.
func TestGatewayBelievesNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	// No proxy stands in front of this one and removes what the gateway lets through.
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names := slices.Sorted(maps.Keys(r.Header))
		_, _ = fmt.Fprintln(w, "backend", r.URL.Path, names, r.Header.Get("X-Forwarded-For"))
	}))
	t.Cleanup(bare.Close)
	w.apply(fmt.Sprintf("{type: MeshExternalService, mesh: default, name: bare, spec: {match: {port: 80, protocol: http}, endpoints: [{address: 127.0.0.1, port: %d}]}}", bare.Listener.Addr().(*net.TCPAddr).Port))
	w.handler("admin", "admin", answers("admin"))
	port := freePort(t)
	e := w.gateway(fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	w.route("web", "", "{default: {backendRefs: [{kind: MeshExternalService, name: bare}]}}, "+to("/admin", "admin"))
	w.gets(port, "a.example", "/", http.StatusOK, "backend")
	w.gets(port, "a.example", "/admin", http.StatusOK, "admin /admin")
	sent := []string{"X-Forwarded-For", "192.0.2.7", "X-Envoy-Max-Retries", "9", "X-Envoy-Upstream-Rq-Timeout-Ms", "1", "X-Envoy-Internal", "true"}
	spellings := rbac.Spellings("x-forwarded-client-cert")
	for _, name := range spellings {
		sent = append(sent, name, "By=spiffe://default.zone-1.mesh.local/workload/admin")
	}
	_, body := askGateway(outsider(), "http", port, "a.example", "/", sent...)
	lower := strings.ToLower(body)
	for _, name := range append(spellings, "x-envoy-max-retries", "x-envoy-upstream-rq-timeout-ms") {
		if strings.Contains(lower, name) {
			t.Errorf("%s got through: %s", name, body)
		}
	}
	if len(spellings) != 8 || !strings.HasPrefix(body, "backend /") || !regexp.MustCompile(`192\.0\.2\.7,[0-9.]+\n`).MatchString(body) {
		t.Errorf("%d spellings: %s", len(spellings), body)
	}
	for path, want := range map[string]string{"/x/../admin": "admin /admin", "/.//admin": "admin /admin", "/./admin": "admin /admin", "/%61dmin": "admin /admin"} {
		if code, body := askGateway(outsider(), "http", port, "a.example", path); code != http.StatusOK || !strings.HasPrefix(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, path := range []string{"/x%2f..%2fadmin", "/x%5cadmin"} {
		if code, body := askGateway(outsider(), "http", port, "a.example", path); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	e.refusedNothing()
}

// TestGatewayHosts: a host belongs to the most specific listener that covers it, and the most specific hostname among
// its routes is tried first, then the others.
func TestGatewayHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	for _, name := range []string{"exact", "wild", "deep", "rest", "pinned"} {
		w.handler(name, name, answers(name))
	}
	port := freePort(t)
	e := w.gateway(fmt.Sprintf("{port: %d, protocol: HTTP, tags: {kind: open}}", port),
		fmt.Sprintf(`{port: %d, protocol: HTTP, hostname: "*.shop.example", tags: {kind: open}}`, port),
		fmt.Sprintf("{port: %d, protocol: HTTP, hostname: closed.shop.example}", port))
	w.route("rest", "", to("/", "rest"))
	w.route("wild", `, hostnames: ["*.shop.example"]`, to("/", "wild"))
	w.route("deep", `, hostnames: ["*.b.shop.example"]`, to("/deep", "deep"))
	w.route("exact", `, hostnames: [a.b.shop.example, a.shop.example]`, to("/exact", "exact"))
	w.apply("{type: MeshHTTPRoute, mesh: default, name: pinned, spec: {targetRef: {kind: MeshGateway, name: edge, tags: {kind: open}}, to: [{targetRef: {kind: Mesh}, hostnames: [closed.shop.example, open.example], rules: [" + to("/", "pinned") + "]}]}}")
	for _, tt := range []struct{ host, path, want string }{
		{"open.example", "/", "pinned"}, {"other.example", "/exact", "rest"}, {"shop.example", "/", "rest"},
		{"x.shop.example", "/", "wild"}, {"x.y.shop.example", "/deep", "wild"}, {"x.b.shop.example", "/deep", "deep"},
		{"x.b.shop.example", "/", "wild"}, {"a.b.shop.example", "/exact", "exact"}, {"a.b.shop.example", "/deep", "deep"},
		{"a.b.shop.example", "/", "wild"}, {"A.Shop.Example", "/exact", "exact"}, {"a.shop.example.", "/exact", "exact"},
		{"closed.shop.example", "/", "wild"},
	} {
		w.gets(port, tt.host, tt.path, http.StatusOK, tt.want+" "+tt.path)
	}
	// Only the listener's own routes are tried on its hostname.
	w.apply("{type: MeshHTTPRoute, mesh: default, name: wild, spec: {targetRef: {kind: MeshGateway, name: edge, tags: {kind: open}}, to: [{targetRef: {kind: Mesh}, rules: [" + to("/", "wild") + "]}]}}")
	w.remove(resources.TypeMeshHTTPRoute, "rest")
	w.gets(port, "closed.shop.example", "/", http.StatusNotFound, "")
	w.gets(port, "open.shop.example", "/", http.StatusOK, "wild")
	w.route("nowhere", `, hostnames: [a.closed.shop.example]`, to("/", "wild"))
	w.gets(port, "a.closed.shop.example", "/", http.StatusOK, "wild")
	e.refusedNothing()
}
