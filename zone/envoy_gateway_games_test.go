package zone_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestGamesAtGateways: whatever a client outside of the mesh makes of HTTP, what no route of the gateway takes reaches no
// service: neither one behind a proxy of the mesh nor one outside of it.
func TestGamesAtGateways(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	w.secret("edge", serverCertificate(t, 1, "backend"))
	apps := []*behind{{}, {}}
	service, bare := httptest.NewServer(apps[0]), httptest.NewServer(apps[1])
	t.Cleanup(service.Close)
	t.Cleanup(bare.Close)
	w.handler("inside", "inside", apps[0].ServeHTTP)
	w.apply(fmt.Sprintf("{type: MeshExternalService, mesh: default, name: bare, spec: {match: {port: 80, protocol: http}, endpoints: [{address: 127.0.0.1, port: %d}]}}", bare.Listener.Addr().(*net.TCPAddr).Port))
	ports := []int{freePort(t), freePort(t)}
	e := w.gateway(fmt.Sprintf("{port: %d, protocol: HTTPS, tags: {to: inside}, tls: {mode: TERMINATE, certificates: [{secret: edge}]}}", ports[0]),
		fmt.Sprintf("{port: %d, protocol: HTTPS, tags: {to: bare}, tls: {mode: TERMINATE, certificates: [{secret: edge}]}}", ports[1]))
	for name, kind := range map[string]string{"inside": "MeshService", "bare": "MeshExternalService"} {
		w.apply(fmt.Sprintf("{type: MeshHTTPRoute, mesh: default, name: %[1]s, spec: {targetRef: {kind: MeshGateway, name: edge, tags: {to: %[1]s}}, to: [{targetRef: {kind: Mesh}, rules: [{matches: [{path: {type: PathPrefix, value: /hello}, method: GET}, {path: {type: PathPrefix, value: /hello}, method: POST}], default: {backendRefs: [{kind: %[2]s, name: %[1]s}]}}]}]}}", name, kind))
	}
	for i, port := range ports {
		eventually(t, "an answer", func() bool {
			code, _ := askGateway(secure(""), "https", port, "a.example", "/hello")
			return code == http.StatusOK
		})
		playGames(t, &tls.Certificate{}, port)
		sawOnlyAllowed(t, apps[i])
	}
	e.refusedNothing()
}

// TestWhatOutsidersSay: of what a client outside of the mesh says in headers that proxies, tracers or applications take
// for a proxy's word, in any spelling, a service sees nothing but what the gateway says itself.
func TestWhatOutsidersSay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, "saw")
		for name, values := range r.Header {
			_, _ = fmt.Fprintln(w, strings.ToLower(name)+": "+strings.Join(values, "|"))
		}
	}))
	t.Cleanup(srv.Close)
	w.apply(fmt.Sprintf("{type: MeshExternalService, mesh: default, name: bare, spec: {match: {port: 80, protocol: http}, endpoints: [{address: 127.0.0.1, port: %d}]}}", srv.Listener.Addr().(*net.TCPAddr).Port))
	port := freePort(t)
	e := w.gateway(fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	w.route("web", "", "{default: {backendRefs: [{kind: MeshExternalService, name: bare}]}}")
	w.gets(port, "a.example", "/", http.StatusOK, "saw")
	names := append(rbac.Spellings("x-envoy-retry-on", "x-envoy-max-retries", "x-envoy-retriable-status-codes",
		"x-envoy-upstream-alt-stat-name", "x-envoy-force-trace", "x-envoy-internal", "x-envoy-expected-rq-timeout-ms",
		"x-envoy-upstream-rq-timeout-ms", "x-envoy-ip-tags", "x-envoy-hedge-on-per-try-timeout", "x-envoy-original-url",
		"x-envoy-decorator-operation", "x-envoy-original-path", "x-envoy-original-host", "x-envoy-external-address",
		"x-envoy-original-dst-host", "x-envoy-fault-abort-request", "x-envoy-attempt-count", "x-envoy-peer-metadata",
		"x-envoy-downstream-service-node", "x-envoy-what-comes-next", "x-forwarded-client-cert", "x-forwarded-host",
		"x-forwarded-port", "x-forwarded-proto", "x-forwarded-prefix", "x-forwarded-f", "x-forwarded-fo",
		"x-forwarded-form", "x-forwarded-for-original", "x-real-ip", "x-original-url", "x-original-host", "x-rewrite-url",
		"script-name", "x-script-name", "x-client-trace-id", "x-b3-sampled", "x-b3-traceid"),
		"forwarded", "Forwarded", "traceparent", "TraceParent", "tracestate", "b3", "x-request-id", "x_forwarded_for",
		"x-forwarded_for", "X_Forwarded-For", "x.real.ip", "x!forwarded!host", "x.forwarded.for", "x-forwarded.for",
		"x~original~url", "x.b3-traceid", "x.envoy.internal")
	for some := range slices.Chunk(names, 50) {
		sent := []string{"X-Forwarded-For", "192.0.2.7", "X-Kept", "said", "Via", "1.1 said", "X-Forwardedness", "said",
			"X-Envoyer", "said", "User-Agent", "said"}
		for _, name := range some {
			sent = append(sent, name, "forged")
		}
		code, body := askGateway(outsider(), "http", port, "a.example", "/", sent...)
		if code != http.StatusOK || strings.Contains(body, "forged") {
			t.Errorf("%d %s", code, body)
		}
		for _, want := range []string{"x-kept: said", "via: 1.1 said", "x-forwardedness: said", "x-envoyer: said",
			"user-agent: said", "x-forwarded-for: 192.0.2.7,", "x-forwarded-proto: http\n", "x-envoy-external-address: ",
			"x-request-id: "} {
			if !strings.Contains(body, want) {
				t.Errorf("no %q: %s", want, body)
			}
		}
	}
	e.refusedNothing()
}

// TestHostsOfRequests: which routes a request gets depends on the host that it is sent on with, however it is written.
func TestHostsOfRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	w.handler("app", "app", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "host "+r.Host) })
	port := freePort(t)
	e := w.gateway(fmt.Sprintf("{port: %d, protocol: HTTP}", port))
	w.route("web", `, hostnames: [open.example, "*.wild.example"]`, to("/", "app"))
	w.gets(port, "open.example", "/", http.StatusOK, "host")
	for head, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: open.example:8080\r\n":                                    "open.example:8080",
		"GET / HTTP/1.1\r\nHost: open.example.\r\n":                                        "open.example",
		"GET / HTTP/1.1\r\nHost: open.example.:80\r\n":                                     "open.example:80",
		"GET / HTTP/1.1\r\nHost: OPEN.example\r\n":                                         "OPEN.example",
		"GET / HTTP/1.1\r\nHost: open.example..\r\n":                                       "",
		"GET / HTTP/1.1\r\nHost: open.example:80:80\r\n":                                   "",
		"GET / HTTP/1.1\r\nHost: a@open.example\r\n":                                       "",
		"GET / HTTP/1.1\r\nHost: open.example, other.example\r\n":                          "",
		"GET / HTTP/1.1\r\nHost: open.example\r\nHost: other.example\r\n":                  "",
		"GET / HTTP/1.1\r\nHost: \r\n":                                                     "",
		"GET / HTTP/1.1\r\n":                                                               "",
		"GET / HTTP/1.1\r\nHost: wild.example\r\n":                                         "",
		"GET / HTTP/1.1\r\nHost: .wild.example\r\n":                                        "",
		"GET / HTTP/1.1\r\nHost: evil.example/.wild.example\r\n":                           "",
		"GET / HTTP/1.1\r\nHost: evil.example?.wild.example\r\n":                           "",
		"GET / HTTP/1.1\r\nHost: evil.example#.wild.example\r\n":                           "",
		"GET / HTTP/1.1\r\nHost: evil.example x.wild.example\r\n":                          "",
		"GET / HTTP/1.1\r\nHost: open.example.evil.example\r\n":                            "",
		"GET http://open.example/ HTTP/1.1\r\nHost: other.example\r\n":                     "open.example",
		"GET http://other.example/ HTTP/1.1\r\nHost: open.example\r\n":                     "",
		"GET http://other.example@open.example/ HTTP/1.1\r\nHost: other.example\r\n":       "open.example",
		"GET http://open.example@other.example/ HTTP/1.1\r\nHost: open.example\r\n":        "",
		"GET https://open.example/ HTTP/1.1\r\nHost: open.example\r\n":                     "",
		"GET ftp://open.example/ HTTP/1.1\r\nHost: open.example\r\n":                       "",
		"GET / HTTP/1.1\r\nHost: open.example\r\nConnection: host\r\n":                     "",
		"GET / HTTP/1.1\r\nHost: open.example\r\nConnection: close, x-forwarded-for\r\n":   "",
		"GET / HTTP/1.1\r\nHost: other.example\r\nX-Forwarded-Host: open.example\r\n":      "",
		"GET / HTTP/1.1\r\nHost: other.example\r\nX-Original-Host: open.example\r\n":       "",
		"GET / HTTP/1.1\r\nHost: other.example\r\nX-Envoy-Original-Host: open.example\r\n": "",
	} {
		got := ""
		if resp, body := writtenInClear(t, port, head+"\r\n"); resp == http.StatusOK {
			got = strings.TrimPrefix(body, "host ")
		}
		if got != want {
			t.Errorf("%q: sent on with %q, want %q", head, got, want)
		}
	}
	e.refusedNothing()
}

// writtenInClear writes bytes on a connection and returns the first answer.
func writtenInClear(t *testing.T, port int, text string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, text)
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(body)
}
