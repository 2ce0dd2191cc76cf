package zone_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/zone"
)

// probed is an application that a proxy asks: it answers with a status, and keeps what it was asked.
type probed struct {
	mu     sync.Mutex
	status int
	asked  []string
}

func (p *probed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var headers []string
	for name, values := range r.Header {
		headers = append(headers, fmt.Sprintf("%s=%s", name, strings.Join(values, ",")))
	}
	slices.Sort(headers)
	body, _ := io.ReadAll(r.Body)
	p.asked = append(p.asked, fmt.Sprintf("%s %s %s %s %q", r.Method, r.Host, r.RequestURI, strings.Join(headers, " "), body))
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(p.status)
}

func (p *probed) says(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.asked = status, nil
}

func (p *probed) was() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func portOfURL(t *testing.T, text string) uint32 {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://"))
	must(t, err)
	var n uint32
	_, err = fmt.Sscan(port, &n)
	must(t, err)
	return n
}

// endsUnasked opens a connection that asks nothing, and waits until the proxy ends it.
func endsUnasked(t *testing.T, port int) error {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	must(t, err)
	defer c.Close()
	must(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	switch _, err := c.Read(make([]byte, 1)); {
	case err == nil:
		return errors.New("it has an answer")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	}
	return nil
}

// TestProbes: the proxy answers the kubelet for the application, and nobody comes to the application that way with
// anything but the probe itself.
func TestProbes(t *testing.T) {
	w := newWorld(t)
	w.waitTrust()
	app := &probed{status: 200}
	open, secure := httptest.NewServer(app), httptest.NewTLSServer(app)
	t.Cleanup(func() { open.Close(); secure.Close() })
	states := health.NewServer()
	streams := healthOver(t, states)
	lines, at := freePort(t), freePort(t)
	probes := []injection.Probe{
		{Path: "/N/app/readinessProbe", Port: portOfURL(t, open.URL), Timeout: 5, HTTPGet: &injection.HTTPGet{Path: "/ready?deep=1",
			Headers: []injection.HTTPHeader{{"name": "Host", "value": "shop.example"}, {"name": "X-Rate", "value": "50%s"}}}},
		{Path: "/N/app/preStop", Port: portOfURL(t, secure.URL), HTTPGet: &injection.HTTPGet{Path: "drain", Scheme: "HTTPS",
			Headers: []injection.HTTPHeader{{"name": "Host", "value": ""}}}},
		{Path: "/N/app/livenessProbe", Port: uint32(lines), Timeout: 1, TCPSocket: &struct{}{}},
		{Path: "/N/app/startupProbe", Port: uint32(streams), Timeout: 1, GRPC: &injection.GRPCProbe{Service: "orders"}},
	}
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: probed, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: 9, protocol: http}]}}`, freePort(t)))
	bootstrap, err := zone.Bootstrap(zone.BootstrapConfig{Dataplane: "probed", XDSAddress: w.address, Probes: probes,
		AdminAddress: fmt.Sprintf("127.0.0.1:%d", freePort(t)), ProbeAddress: fmt.Sprintf("127.0.0.1:%d", at), ApplicationAddress: "127.0.0.1"})
	must(t, err)
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	must(t, os.WriteFile(file, bootstrap, 0o600))
	w.runEnvoy(file)
	ask := func(request string) string {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", at))
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		_, _ = io.WriteString(c, request)
		resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: strings.Fields(request)[0]})
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		answer, _ := httputil.DumpResponse(resp, true)
		return string(answer)
	}
	get := func(path string, headers ...string) string {
		return ask("GET " + path + " HTTP/1.1\r\nhost: 10.0.0.1\r\nconnection: close\r\n" + strings.Join(append(headers, "\r\n"), "\r\n"))
	}
	status := func(path string, want int) {
		t.Helper()
		eventually(t, fmt.Sprint(path, " to answer ", want), func() bool {
			return strings.HasPrefix(get(path), fmt.Sprintf("HTTP/1.1 %d ", want))
		})
	}
	status("/N/app/readinessProbe", 200)
	app.says(200)
	get("/N/app/readinessProbe", "x-original-url: /admin", "x-http-method-override: DELETE", "cookie: a=b", "authorization: Basic eA==",
		"x-forwarded-host: a", "user-agent: me", "x-rate: 1")
	get("/N/app/preStop")
	want := []string{`GET shop.example /ready?deep=1 Accept=*/* User-Agent=kube-probe/causeway X-Rate=50%s ""`,
		fmt.Sprintf(`GET 127.0.0.1:%d /drain Accept=*/* User-Agent=kube-probe/causeway ""`, probes[1].Port)}
	if got := app.was(); !slices.Equal(got, want) {
		t.Errorf("the application was asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	app.says(500)
	status("/N/app/readinessProbe", 500)
	app.says(302)
	if got := get("/N/app/readinessProbe"); !strings.HasPrefix(got, "HTTP/1.1 302 ") || strings.Contains(strings.ToLower(got), "location:") {
		t.Errorf("a redirect: %s", got)
	}
	app.says(200)
	for _, request := range []string{"GET / ", "GET /ready?deep=1 ", "GET /N/app/readinessProbe?x ", "GET /N/app/readinessProbe/ ", "GET /N/app ",
		"GET //N/app/readinessProbe ", "GET /N/app/../app/readinessProbe ", "GET /N/app/readinessProb%65 ", "GET /N/app/readinessProbe;x ",
		"POST /N/app/readinessProbe ", "HEAD /N/app/preStop ", "POST /N/app/livenessProbe ", "GET /N/app/livenessProbe?x ",
		"GET http://10.0.0.1/N/app/readinessProbe?x ", "OPTIONS * "} {
		if got := ask(request + "HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 404 ") {
			t.Errorf("%s: %s", request, got)
		}
	}
	for _, body := range []string{"content-length: 3\r\n\r\nabc", "content-length: 0\r\n\r\n", "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"} {
		if got := ask("GET /N/app/readinessProbe HTTP/1.1\r\nhost: a\r\nconnection: close\r\n" + body); !strings.HasPrefix(got, "HTTP/1.1 404 ") {
			t.Errorf("%q: %s", body, got)
		}
	}
	if got := app.was(); len(got) > 0 {
		t.Errorf("the application was asked %q", got)
	}

	status("/N/app/livenessProbe", 503)
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", lines))
	must(t, err)
	status("/N/app/livenessProbe", 200)
	l.Close()
	status("/N/app/livenessProbe", 503)
	status("/N/app/startupProbe", 503)
	states.SetServingStatus("orders", healthgrpc.HealthCheckResponse_SERVING)
	status("/N/app/startupProbe", 200)
	states.SetServingStatus("orders", healthgrpc.HealthCheckResponse_NOT_SERVING)
	status("/N/app/startupProbe", 503)

	if err := endsUnasked(t, at); err != nil {
		t.Errorf("a connection without a request: %v", err)
	}

	for name, cfg := range map[string]zone.BootstrapConfig{
		"probe address":       {ProbeAddress: "15020", ApplicationAddress: "10.0.0.1"},
		"application address": {ProbeAddress: "0.0.0.0:15020", ApplicationAddress: "here"},
		"probes[0]":           {ProbeAddress: "0.0.0.0:15020", ApplicationAddress: "10.0.0.1", Probes: []injection.Probe{{Path: "/a?", Port: 1}}},
		"port 0":              {ProbeAddress: "0.0.0.0:15020", ApplicationAddress: "10.0.0.1", Probes: []injection.Probe{{Path: "/a"}}},
		"want httpGet":        {ProbeAddress: "0.0.0.0:15020", ApplicationAddress: "10.0.0.1", Probes: []injection.Probe{{Path: "/a", Port: 1}}},
	} {
		cfg.Dataplane, cfg.XDSAddress = "a", "127.0.0.1:5678"
		if cfg.Probes == nil {
			cfg.Probes = probes
		}
		if _, err := zone.Bootstrap(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
