package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServeHTTPFinishesRequestsUnderWay(t *testing.T) {
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if !server.IsLoopback(l.Addr()) {
		t.Errorf("%s is loopback", l.Addr())
	}
	ctx, stop := context.WithCancel(t.Context())
	begun, finish := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- server.ServeHTTP(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-finish
			_, _ = io.WriteString(w, "whole")
		}), nil)
	}()
	body := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			body <- err.Error()
			return
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		body <- string(b)
	}()
	<-begun
	stop()
	close(finish)
	if got := <-body; got != "whole" {
		t.Errorf("got %q", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// waiting is a handler whose requests wait until it is drained.
type waiting struct{ begun, drained chan struct{} }

func (h waiting) ServeHTTP(http.ResponseWriter, *http.Request) {
	close(h.begun)
	<-h.drained
}

func (h waiting) Drain() { close(h.drained) }

// A server that stops does not wait for requests that are waiting.
func TestServeHTTPDrains(t *testing.T) {
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	h := waiting{make(chan struct{}), make(chan struct{})}
	done := make(chan error, 2)
	go func() { done <- server.ServeHTTP(ctx, l, h, nil) }()
	go func() {
		resp, err := http.Get("http://" + l.Addr().String())
		if err == nil {
			err = resp.Body.Close()
		}
		done <- err
	}()
	<-h.begun
	began := time.Now()
	stop()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > 8*time.Second { // all that are in progress have 10 s
		t.Errorf("the server ends after %s", took)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestDiagnostics(t *testing.T) {
	d := server.NewDiagnostics()
	var broken error
	d.AddCheck("store", func() error { return broken })
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		d.Handler(&net.TCPAddr{IP: net.IPv4zero}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, _ := get("/readyz"); code != http.StatusOK {
		t.Errorf("ready: %d", code)
	}
	broken = errors.New("the disk is full")
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "store: the disk is full") {
		t.Errorf("not ready: %d %s", code, body)
	}
	if code, _ := get("/livez"); code != http.StatusOK {
		t.Errorf("live: %d", code)
	}
	if _, body := get("/metrics"); !strings.Contains(body, "causeway_build_info") {
		t.Error("no build info among the metrics")
	}
}

func TestProfilesAreForLoopback(t *testing.T) {
	for address, want := range map[string]int{
		"127.0.0.1": http.StatusOK, "::1": http.StatusOK,
		"0.0.0.0": http.StatusForbidden, "::": http.StatusForbidden, "10.0.0.7": http.StatusForbidden,
	} {
		h := server.NewDiagnostics().Handler(&net.TCPAddr{IP: net.ParseIP(address), Port: 5680})
		// As text: the other form names the build of this test's binary, which the test would open. Its time is that of
		// the run, so the go command would keep no result.
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap?debug=1", "/debug/pprof/goroutine?debug=1"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != want {
				t.Errorf("on %s, %s: %d %.100q, want %d", address, path, w.Code, w.Body.String(), want)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/pprof/cmdline", nil))
		if w.Code == http.StatusOK {
			t.Errorf("on %s the command line is shown", address)
		}
	}
}

// TestClusterID checks that the id survives restarts, and that a damaged file is not replaced.
func TestClusterID(t *testing.T) {
	path := filepath.Join(t.TempDir(), server.ClusterIDFile)
	id, err := server.ClusterID(path)
	if err != nil || len(id) != 36 {
		t.Fatal(id, err)
	}
	if again, err := server.ClusterID(path); err != nil || again != id {
		t.Errorf("%s became %s (%v)", id, again, err)
	}
	if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other, err := server.ClusterID(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged file: %s, %v", other, err)
	}
}

func TestReadyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready.json")
	if err := server.WriteReadyFile(path, map[string]string{"api": "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(data, &got); err != nil || got["api"] != "127.0.0.1:1" {
		t.Errorf("%s: %v", data, err)
	}
	if err := server.WriteReadyFile(filepath.Join(t.TempDir(), "none", "ready"), nil); err == nil {
		t.Error("a missing folder is no error")
	}
}

func TestTLSServes(t *testing.T) {
	cert, err := server.LoadOrCreateCertificate(t.TempDir(), nil, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = cert.TLSConfig()
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert.CAPEM)
	c, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "localhost",
		MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if n := len(c.ConnectionState().PeerCertificates); n != 2 {
		t.Errorf("the chain has %d certificates; pinning the CA needs it there", n)
	}
}
