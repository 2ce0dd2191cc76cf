package zone_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/causeway-mesh/causeway/resources"
)

// largeBody is the size of a large request, and of its answer.
const largeBody = 10 << 20

// opened is a caller of a service that echoes bodies and messages on a WebSocket.
type opened struct {
	*world
	port            int
	backend, caller *envoy
}

func newOpened(t *testing.T) *opened {
	t.Helper()
	w := newWorld(t)
	w.waitTrust()
	w.allowAll()
	backend := w.echoingSockets("backend")
	ports, caller := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "the service", ok(ports[0], "/"))
	return &opened{w, ports[0], backend, caller}
}

// echoingSockets runs a service that echoes bodies, and messages on a WebSocket.
func (w *world) echoingSockets(name string) *envoy {
	w.t.Helper()
	echo := websocket.Server{Handler: func(c *websocket.Conn) { _, _ = io.Copy(c, c) }}
	return w.handler(name, name, func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/socket" {
			echo.ServeHTTP(out, r)
			return
		}
		body, _ := io.ReadAll(r.Body) // whole, so that the answer does not depend on how the client reads
		_, _ = out.Write(body)
	})
}

// dial opens a WebSocket by way of both proxies.
func (o *opened) dial() *websocket.Conn { return o.dialAt(o.port) }

// dialAt opens one at an outbound.
func (o *opened) dialAt(port int) *websocket.Conn {
	o.t.Helper()
	at := fmt.Sprintf("127.0.0.1:%d", port)
	c, err := websocket.Dial("ws://"+at+"/socket", "", "http://"+at)
	must(o.t, err)
	o.t.Cleanup(func() { _ = c.Close() })
	return c
}

// answersOn reports whether a message on a WebSocket comes back.
func answersOn(c *websocket.Conn, text string) error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if err := websocket.Message.Send(c, text); err != nil {
		return err
	}
	var got string
	if err := websocket.Message.Receive(c, &got); err != nil || got != text {
		return fmt.Errorf("sent %q, got %q: %w", text, got, err)
	}
	return nil
}

// quiet are policies that need no listener but one of their own.
var quiet = []struct {
	typ  resources.Type
	spec string
}{
	{resources.TypeMeshTimeout, "{to: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: 7s, streamIdleTimeout: 1h}}}]}"},
	{resources.TypeMeshTimeout, "{to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 7s}}]}"},
	{resources.TypeMeshTimeout, "{rules: [{default: {http: {requestTimeout: 7s}}}]}"},
	{resources.TypeMeshRetry, "{to: [{targetRef: {kind: Mesh}, default: {http: {numRetries: 2, retryOn: ['503']}}}]}"},
	{resources.TypeMeshHTTPRoute, "{to: [{targetRef: {kind: MeshService, name: backend}, rules: [{matches: [{path: {type: PathPrefix, value: /v2}}], default: {filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-a, value: b}]}}]}}]}]}"},
	{resources.TypeMeshRateLimit, "{rules: [{default: {local: {http: {requestRate: {num: 1000, interval: 1s}}, tcp: {connectionRate: {num: 1000, interval: 1s}}}}}]}"},
	{resources.TypeMeshFaultInjection, "{rules: [{matches: [{path: {type: Exact, value: /fails}}], default: {http: [{abort: {httpStatus: 418, percentage: 100}}]}}]}"},
	{resources.TypeMeshTrafficPermission, "{rules: [{default: {deny: [{path: {type: Exact, value: /denied}}]}}]}"},
	{resources.TypeMeshLoadBalancingStrategy, "{to: [{targetRef: {kind: Mesh}, default: {loadBalancer: {type: LeastRequest}}}]}"},
	{resources.TypeMeshCircuitBreaker, "{to: [{targetRef: {kind: Mesh}, default: {connectionLimits: {maxConnections: 77}}}]}"},
	{resources.TypeMeshCircuitBreaker, "{rules: [{default: {connectionLimits: {maxConnections: 77}}}]}"},
	{resources.TypeMeshHealthCheck, "{to: [{targetRef: {kind: Mesh}, default: {interval: 1s, timeout: 1s, http: {path: /}}}]}"},
	{resources.TypeMeshMetric, "{targetRef: {kind: Dataplane, name: caller}, default: {backends: [{type: Prometheus, prometheus: {port: PORT}}]}}"},
}

// TestOpenStreamsLastThroughPolicies: policies of all types that need no listener come, change and go, and a WebSocket
// that is open at both proxies stays open; so it does when a MeshTrace gets another share, tag or collector, and a
// MeshAccessLog another collector. When a listener is replaced, it ends.
func TestOpenStreamsLastThroughPolicies(t *testing.T) {
	t.Parallel()
	o := newOpened(t)
	first, second := startCollector(t), startCollector(t)
	trace := func(c *collector, more string) {
		o.apply(fmt.Sprintf("{type: MeshTrace, mesh: default, name: p, spec: {default: {backends: [{type: OpenTelemetry, openTelemetry: {endpoint: %q}}], %s}}}", c.address, more))
	}
	tagged := func(c *collector, text string) func() bool {
		return func() bool {
			plain(o.port, "/")
			services := map[string]bool{}
			for _, s := range c.taken() {
				services[s.service] = services[s.service] || s.attributes["tag"] == text
			}
			return services["backend"] && services["caller"]
		}
	}
	log := func(c *collector) {
		to := fmt.Sprintf("{backends: [{type: OpenTelemetry, openTelemetry: {endpoint: %q, body: %%s}}]}", c.address)
		o.apply(fmt.Sprintf("{type: MeshAccessLog, mesh: default, name: l, spec: {to: [{targetRef: {kind: Mesh}, default: "+to+"}], rules: [{default: "+to+"}]}}", "out", "in"))
	}
	logs := func(c *collector) func() bool {
		return func() bool {
			plain(o.port, "/")
			lines := c.lines()
			return slices.Contains(lines, "in") && slices.Contains(lines, "out")
		}
	}
	trace(first, "tags: [{name: tag, literal: one}]")
	eventually(t, "spans", tagged(first, "one"))
	log(first)
	eventually(t, "logs", logs(first))
	socket := o.dial()
	must(t, answersOn(socket, "hello"))
	before := map[*envoy]map[string]string{o.caller: o.caller.listeners(), o.backend: o.backend.listeners()}

	trace(first, "tags: [{name: tag, literal: two}], sampling: {overall: 100, random: 100}")
	eventually(t, "another tag", tagged(first, "two"))
	trace(second, "tags: [{name: tag, literal: three}], sampling: {overall: 100, random: 99}")
	eventually(t, "another collector", tagged(second, "three"))
	must(t, answersOn(socket, "traced"))
	log(second)
	eventually(t, "another collector of logs", logs(second))
	must(t, answersOn(socket, "logged"))

	for _, q := range quiet {
		spec := strings.ReplaceAll(q.spec, "PORT", fmt.Sprint(freePort(t)))
		o.apply(fmt.Sprintf("{type: %s, mesh: default, name: q, spec: %s}", q.typ, spec))
		o.settles(spec)
		must(t, answersOn(socket, spec))
		o.remove(q.typ, "q")
		o.settles("removal of " + spec)
		must(t, answersOn(socket, "without "+string(q.typ)))
	}
	// A replaced listener would end it after the drain time of 1 s.
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		must(t, answersOn(socket, "still there"))
	}
	for e, was := range before {
		now := e.listeners()
		for name, state := range was {
			if strings.HasPrefix(name, "listener ") && now[name] != state {
				t.Errorf("%s was %s, and is %s", name, state, now[name])
			}
		}
	}
	// The check can fail: the format of spans is in the listener.
	z := startZipkin(t)
	o.apply(fmt.Sprintf(`{type: MeshTrace, mesh: default, name: p, spec: {default: {backends: [{type: Zipkin, zipkin: {url: "%s/api/v2/spans"}}]}}}`, z.URL))
	eventually(t, "the end of the WebSocket with its listener", func() bool { return answersOn(socket, "over?") != nil })
}

// TestLargeBodiesAndWebSockets: with a retry, timeouts, limits, a log, spans and a fault for others on their way, 10 MiB
// come back as they were sent, also several at once, and a WebSocket passes on what is written.
func TestLargeBodiesAndWebSockets(t *testing.T) {
	t.Parallel()
	o := newOpened(t)
	c := startCollector(t)
	for typ, spec := range map[resources.Type]string{
		resources.TypeMeshRetry:          "{to: [{targetRef: {kind: Mesh}, default: {http: {numRetries: 2, retryOn: [5xx]}}}]}",
		resources.TypeMeshTimeout:        "{to: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: 60s, streamIdleTimeout: 30s}}}], rules: [{default: {http: {requestTimeout: 60s}}}]}",
		resources.TypeMeshRateLimit:      "{rules: [{default: {local: {http: {requestRate: {num: 1000, interval: 1s}}}}}]}",
		resources.TypeMeshFaultInjection: "{rules: [{matches: [{path: {type: Exact, value: /fails}}], default: {http: [{abort: {httpStatus: 418, percentage: 100}}]}}]}",
		resources.TypeMeshAccessLog:      "{to: [{targetRef: {kind: Mesh}, default: {backends: [{type: File, file: {path: /dev/stdout, format: {type: Plain, plain: 'bytes %BYTES_RECEIVED% %BYTES_SENT%'}}}]}}]}",
		resources.TypeMeshTrace:          fmt.Sprintf("{default: {backends: [{type: OpenTelemetry, openTelemetry: {endpoint: %q}}]}}", c.address),
	} {
		o.apply(fmt.Sprintf("{type: %s, mesh: default, name: p, spec: %s}", typ, spec))
	}
	eventually(t, "all of them", func() bool { // the log and the spans of both proxies come with new listeners
		code, _ := plain(o.port, "/fails")
		services := map[string]bool{}
		for _, s := range c.taken() {
			services[s.service] = true
		}
		return code == http.StatusTeapot && services["backend"] && services["caller"] && strings.Contains(strings.Join(logged(o.caller.log), ""), "bytes 0 ")
	})
	body := make([]byte, largeBody)
	_, _ = rand.Read(body)
	sum := sha256.Sum256(body)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			client := &http.Client{Timeout: 2 * patience, Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Post(fmt.Sprintf("http://127.0.0.1:%d/large", o.port), "application/octet-stream", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			hash := sha256.New()
			if n, err := io.Copy(hash, resp.Body); err != nil || n != largeBody || [32]byte(hash.Sum(nil)) != sum {
				t.Errorf("%d, %d bytes, %v: not what was sent", resp.StatusCode, n, err)
			}
		})
	}
	all.Wait()
	soon(t, func() error {
		if want := fmt.Sprintf("bytes %d %d", largeBody, largeBody); !strings.Contains(strings.Join(logged(o.caller.log), "\n"), want) {
			return fmt.Errorf("no line %q", want)
		}
		return nil
	})
	socket := o.dial()
	must(t, socket.SetDeadline(time.Now().Add(patience)))
	go func() { _, _ = socket.Write(body) }()
	got := make([]byte, largeBody)
	if _, err := io.ReadFull(socket, got); err != nil || sha256.Sum256(got) != sum {
		t.Errorf("on the WebSocket: %v, or not what was sent", err)
	}
	o.caller.refusedNothing()
	o.backend.refusedNothing()
}
