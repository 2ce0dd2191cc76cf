package zone_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/causeway-mesh/causeway/zone"
)

// TestHeadersThatSteerEnvoy: what a client says in x-envoy-* headers has the proxy of a service repeat nothing, count
// under no new name, and wait no longer.
func TestHeadersThatSteerEnvoy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls atomic.Int64
	var seen atomic.Value
	app := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		seen.Store(fmt.Sprint(r.Header))
		out.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(app.Close)
	port := freePort(t)
	w.httpDataplane("backend", port, app.Listener.Addr().(*net.TCPAddr).Port)
	w.allowAll()
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	client := w.client("caller")
	ask := func(headers ...string) int {
		req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/fails", port), nil)
		must(t, err)
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	eventually(t, "the application's answer", func() bool { return ask() == http.StatusServiceUnavailable && calls.Load() > 0 })
	count := func(headers ...string) int64 {
		before := calls.Load()
		ask(headers...)
		return calls.Load() - before
	}
	usual := count()
	for _, from := range []string{"", "10.0.0.1", "8.8.8.8"} {
		steering := []string{"x-envoy-retry-on", "5xx", "x-envoy-max-retries", "7", "X-Envoy-Retriable-Status-Codes",
			"503", "x-envoy-upstream-alt-stat-name", "evilstat",
			"x-envoy-force-trace", "yes", "x-envoy-internal", "true", "x-envoy-expected-rq-timeout-ms", "7777777",
			"x-envoy-upstream-rq-timeout-ms", "7777777",
			"x-forwarded-client-cert", "URI=evil", "x_forwarded_client_cert", "URI=evil", "x-forwarded_client-cert",
			"URI=evil", "x_forwarded-client-cert", "URI=evil", "x.forwarded.client.cert", "URI=evil", "x-envoy-ip-tags", "evil",
			"x-envoy-hedge-on-per-try-timeout", "evil", "x-envoy-original-url", "/evil",
			// These reach the application as they are, which docs/security.md says.
			"x-envoy-decorator-operation", "said", "x-envoy-original-path", "/said", "x-envoy-external-address",
			"192.0.2.7", "x-envoy-original-dst-host", "192.0.2.7:1",
			"x-envoy-fault-abort-request", "418", "x-envoy-fault-abort-request-percentage", "100",
			"x-envoy-fault-delay-request", "20000", "x-envoy-fault-delay-request-percentage", "100"}
		if from != "" {
			steering = append(steering, "x-forwarded-for", from)
		}
		if got := count(steering...); got != usual {
			t.Errorf("from %q the application was called %d times, and %d times without such headers", from, got, usual)
		}
		if got := seen.Load().(string); strings.Contains(got, "evil") || strings.Contains(got, "7777777") ||
			strings.Contains(got, "X-Envoy-Retry-On") || strings.Contains(got, "X-Envoy-Max-Retries") {
			t.Errorf("from %q the application was told %s", from, got)
		}
	}
	if got := ask("x-envoy-fault-abort-request", "418", "x-envoy-fault-abort-request-percentage",
		"100"); got != http.StatusServiceUnavailable {
		t.Errorf("a request that asks for a fault: %d", got)
	}
	if stats := e.get("/stats"); strings.Contains(stats, "evilstat") {
		t.Error("the proxy counts under a name that a request says")
	}
	e.refusedNothing()
}
