package global_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
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
	if err := r.stop(); err != nil {
		t.Error(err)
	}
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
