package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
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

// testBox is a trivial sealer.
type testBox byte

var errOtherBox = errors.New("another box")

func (b testBox) Seal(plain []byte, purpose string) ([]byte, error) {
	out := append([]byte(purpose), byte(b))
	for _, c := range plain {
		out = append(out, c^0x55)
	}
	return out, nil
}

func (b testBox) Open(sealed []byte, purpose string) ([]byte, error) {
	rest, ok := bytes.CutPrefix(sealed, append([]byte(purpose), byte(b)))
	if !ok {
		return nil, errOtherBox
	}
	plain := make([]byte, len(rest))
	for i, c := range rest {
		plain[i] = c ^ 0x55
	}
	return plain, nil
}

// TestKeysAreSealed checks that new keys are sealed, existing plaintext ones are sealed unchanged, and only one box
// opens them.
func TestKeysAreSealed(t *testing.T) {
	dir := t.TempDir()
	first, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, purpose := range map[string]string{"ca.key": "server-ca", "tls.key": "server-tls"} {
		sealed := read(name)
		if bytes.Contains(sealed, []byte("PRIVATE KEY")) {
			t.Errorf("%s is in the clear", name)
		}
		plain, err := testBox(7).Open(sealed, purpose)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), plain, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if again.CASHA256 != first.CASHA256 || !leafOf(t, again).Equal(leafOf(t, first)) {
		t.Error("what was taken over is something else")
	}
	before := read("ca.key")
	if bytes.Contains(before, []byte("PRIVATE KEY")) || bytes.Contains(read("tls.key"), []byte("PRIVATE KEY")) {
		t.Error("the keys stayed in the clear")
	}
	if _, err := server.LoadOrCreateCertificate(dir, nil, testBox(8), time.Now); !errors.Is(err, errOtherBox) ||
		!strings.Contains(err.Error(), "cannot be opened") {
		t.Errorf("got %v", err)
	}
	if !bytes.Equal(before, read("ca.key")) {
		t.Error("a wrong key changed the file")
	}
}

func TestCertificateIsKeptAndVerifies(t *testing.T) {
	dir := t.TempDir()
	first, err := server.LoadOrCreateCertificate(dir, []string{"global.example"}, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(first.CAPEM)
	if sum := sha256.Sum256(block.Bytes); hex.EncodeToString(sum[:]) != first.CASHA256 {
		t.Errorf("CASHA256 %s is not the digest of CAPEM", first.CASHA256)
	}
	again, err := server.LoadOrCreateCertificate(dir, []string{"global.example"}, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if leafOf(t, again).SerialNumber.Cmp(leafOf(t, first).SerialNumber) != 0 {
		t.Error("the serving certificate was replaced without need")
	}
	other, err := server.LoadOrCreateCertificate(dir, []string{"other.example"}, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if other.CASHA256 != first.CASHA256 {
		t.Error("a new host name replaced the CA")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(first.CAPEM)
	for _, host := range []string{"other.example", "127.0.0.1", "localhost"} {
		if _, err := leafOf(t, other).Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, key := range []string{"ca.key", "tls.key"} {
		info, err := os.Stat(filepath.Join(dir, key))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", key, info.Mode().Perm())
		}
	}
}

func TestDamagedCAIsNeverReplaced(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"garbage certificate": func(dir string) error { return os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("x"), 0o600) },
		"key gone":            func(dir string) error { return os.Remove(filepath.Join(dir, "ca.key")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now); err != nil {
				t.Fatal(err)
			}
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			_, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now)
			if err == nil || !strings.Contains(err.Error(), "restore both files") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// TestCAIsWholeAtOnce removes the certificate of a CA, as if the first start had not yet written it, and then removes
// it from the key, as an earlier version wrote it. The CA stays the same.
func TestCAIsWholeAtOnce(t *testing.T) {
	dir := t.TempDir()
	first, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	certificate, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	same := func(what string) {
		t.Helper()
		if again, err := server.LoadOrCreateCertificate(dir, nil, testBox(7), time.Now); err != nil {
			t.Errorf("%s: %v", what, err)
		} else if raw, err := os.ReadFile(certificate); again.CASHA256 != first.CASHA256 || err != nil ||
			!bytes.Equal(raw, first.CAPEM) {
			t.Errorf("%s: the CA is another one (%v)", what, err)
		}
	}
	if err := os.Remove(certificate); err != nil {
		t.Fatal(err)
	}
	same("without its certificate")
	sealed, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := testBox(7).Open(sealed, "server-ca")
	if err != nil {
		t.Fatal(err)
	}
	key, _ := pem.Decode(plain)
	older, err := testBox(7).Seal(pem.EncodeToMemory(key), "server-ca")
	if err == nil {
		err = os.WriteFile(keyFile, older, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	same("as an earlier version wrote it")
	if err := os.Remove(certificate); err != nil {
		t.Fatal(err)
	}
	same("without its certificate, after an upgrade")
}

func leafOf(t *testing.T, c *server.Certificate) *x509.Certificate {
	t.Helper()
	served, err := c.TLSConfig().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return served.Leaf
}

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
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=1"} {
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
