package global_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/global"
)

func TestHTTPOffLoopbackIsTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, dir, func(c *global.Config) { c.APIAddress, c.DiagnosticsAddress, c.KDSTLS = "0.0.0.0:0", "0.0.0.0:0", false })
	ca, err := os.ReadFile(filepath.Join(dir, "kds-tls", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	secure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool,
		MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	want := map[string]int{"api": http.StatusUnauthorized, "diagnostics": http.StatusOK} // off loopback, a caller needs a credential
	for key, path := range map[string]string{"api": "/zones", "diagnostics": "/livez"} {
		_, port, err := net.SplitHostPort(r.addresses[key])
		if err != nil {
			t.Fatal(err)
		}
		if got := httpStatus(t, secure, "https://127.0.0.1:"+port+path); got != want[key] {
			t.Errorf("%s over TLS: status %d, want %d", key, got, want[key])
		}
		if got := httpStatus(t, plain, "http://127.0.0.1:"+port+path); got == http.StatusOK {
			t.Errorf("%s answers in plaintext on an address that leaves this machine", key)
		}
	}
	_, port, _ := net.SplitHostPort(r.addresses["diagnostics"])
	text := get(t, secure, "https://127.0.0.1:"+port+"/metrics")
	for _, of := range []string{"server", "server-ca", "zone-ca"} {
		if !strings.Contains(text, `causeway_certificate_expiry_timestamp_seconds{certificate="`+of+`"} `) {
			t.Errorf("the metrics do not tell when %s ends", of)
		}
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// httpStatus returns the answer's status; zero if there is none.
func httpStatus(t *testing.T, c *http.Client, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
