package zone_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/zone"
)

// seen is a request as the application received it.
type seen struct {
	Proto, Path, XFCC string
}

// reflecting runs an application that answers with what it received. With http2 it accepts only HTTP/2.
func reflecting(t *testing.T, http2 bool) (port int) {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "the-application")
		_ = json.NewEncoder(w).Encode(seen{Proto: r.Proto, Path: r.URL.Path, XFCC: r.Header.Get("X-Forwarded-Client-Cert")})
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(!http2)
	srv.Config.Protocols.SetUnencryptedHTTP2(http2)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().(*net.TCPAddr).Port
}

// h2Client returns a client that uses HTTP/2 to the proxy.
func h2Client(certificate *tls.Certificate) *http.Client {
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}},
		ForceAttemptHTTP2: true,
	}}
}

func TestHTTPInbounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := freePort(t), freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: one, port: %d, servicePort: %d, protocol: http}, {name: two, port: %d, servicePort: %d, protocol: grpc}]}}`,
		one, reflecting(t, false), two, reflecting(t, true)))
	w.apply(allowAlice)
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	h1, h2 := w.client("alice"), h2Client(w.certificate("alice"))
	defer h2.CloseIdleConnections()
	eventually(t, "both inbounds", func() bool { return status(h1, one) == http.StatusOK && status(h1, two) == http.StatusOK })
	for name, c := range map[string]struct {
		client *http.Client
		port   int
		proto  string // of client, application
	}{
		"h1 to h1": {h1, one, "HTTP/1.1 HTTP/1.1"}, "h2 to h1": {h2, one, "HTTP/2.0 HTTP/1.1"},
		"h1 to h2": {h1, two, "HTTP/1.1 HTTP/2.0"}, "h2 to h2": {h2, two, "HTTP/2.0 HTTP/2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/a/../b//c?x=/..", c.port), nil)
			must(t, err)
			req.Header.Set("X-Forwarded-Client-Cert", "URI=spiffe://default.zone-1.mesh.local/workload/admin")
			resp, err := c.client.Do(req)
			must(t, err)
			defer resp.Body.Close()
			var got seen
			must(t, json.NewDecoder(resp.Body).Decode(&got))
			if proto := resp.Proto + " " + got.Proto; proto != c.proto {
				t.Errorf("%s, want %s", proto, c.proto)
			}
			if got.Path != "/b/c" || got.XFCC != "" || resp.Header.Get("Server") != "the-application" {
				t.Errorf("the application saw %+v, the client server %q", got, resp.Header.Get("Server"))
			}
		})
	}
	for _, path := range []string{"/a%2fb", "/a%5Cb"} {
		resp, err := h1.Get(fmt.Sprintf("https://127.0.0.1:%d%s", one, path))
		must(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d, want 400", path, resp.StatusCode)
		}
	}
}
