package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var things = Kind{Group: "example.org", Version: "v1", Plural: "things", Name: "Thing", Namespaced: true}

// connected returns a client of a server over TLS, whose token is in a file with a relative path.
func connected(t *testing.T, h http.HandlerFunc) (c *Client, tokenFile string) {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	tokenFile = filepath.Join(dir, "token")
	must(t, os.WriteFile(tokenFile, []byte("a-token\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "ca"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	c, err := Connect(Config{Kubeconfig: kubeconfigIn(t, dir, srv.URL, `{"tokenFile": "token"}`), RequestsPerSecond: 1000})
	must(t, err)
	t.Cleanup(c.http.CloseIdleConnections)
	return c, tokenFile
}

func kubeconfigIn(t *testing.T, dir, server, user string) string {
	t.Helper()
	path := filepath.Join(dir, "kubeconfig")
	must(t, os.WriteFile(path, fmt.Appendf(nil, `{"current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
"clusters": [{"name": "it", "cluster": {"server": %q, "certificate-authority": "ca"}}], "users": [{"name": "it", "user": %s}]}`, server, user), 0o600))
	return path
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRedirectsAreNotFollowed redirects within the server and away from it.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, to := range []string{other.URL, "/moved"} {
		for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
			c, _ := connected(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/moved" {
					elsewhere.Add(1)
				}
				http.Redirect(w, r, to, code)
			})
			if _, err := c.Create(t.Context(), things, "ns", []byte(`{}`)); codeOf(err) != code {
				t.Errorf("%d to %s: %v", code, to, err)
			}
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// TestAuthorityReplaced replaces the authority of the API server, as a cluster does that renews it.
func TestAuthorityReplaced(t *testing.T) {
	first := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"metadata": {"name": "n"}}`) }))
	defer first.Close()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca")
	must(t, os.WriteFile(ca, otherAuthority(t), 0o600))
	c, err := Connect(Config{Kubeconfig: kubeconfigIn(t, dir, first.URL, `{"token": "a-token"}`)})
	must(t, err)
	defer c.http.CloseIdleConnections()
	if _, err := c.Get(t.Context(), things, Name{Namespace: "ns", Name: "n"}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a stranger is trusted: %v", err)
	}
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: first.Certificate().Raw}), 0o600))
	if _, err := c.Get(t.Context(), things, Name{Namespace: "ns", Name: "n"}); err != nil {
		t.Errorf("the new authority is not trusted: %v", err)
	}
	must(t, os.WriteFile(ca, []byte("half"), 0o600))
	c.http.CloseIdleConnections()
	if _, err := c.Get(t.Context(), things, Name{Namespace: "ns", Name: "n"}); err == nil || !strings.Contains(err.Error(), "has no certificate") {
		t.Errorf("without an authority: %v", err)
	}
}

// otherAuthority is a certificate that signed nothing here.
func otherAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestEmptyTokenAsksNothing empties the file of the token, as a writer does that does not replace it at once.
func TestEmptyTokenAsksNothing(t *testing.T) {
	var asked atomic.Int32
	c, tokenFile := connected(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "Bearer a-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"metadata": {"name": "x"}}`)
	})
	_, err := c.Get(t.Context(), things, Name{Name: "x"})
	must(t, err)
	must(t, os.WriteFile(tokenFile, []byte("\n"), 0o600))
	c.read = time.Time{}
	if _, err := c.Get(t.Context(), things, Name{Name: "x"}); err == nil || !strings.Contains(err.Error(), "is empty") || asked.Load() != 1 {
		t.Errorf("%d requests, then %v", asked.Load(), err)
	}
}

// TestPrefersIPv6: the API server's Service has an address of the family that pods have first.
func TestPrefersIPv6(t *testing.T) {
	for address, want := range map[string]bool{"10.96.0.1": false, "fd00:10:96::1": true, "": false, "kubernetes.example": false, "::ffff:10.96.0.1": false} {
		t.Setenv("KUBERNETES_SERVICE_HOST", address)
		if PrefersIPv6() != want {
			t.Errorf("%q: %t", address, !want)
		}
	}
}

// TestKubeconfigsRefused names what is wrong with a file.
func TestKubeconfigsRefused(t *testing.T) {
	for name, c := range map[string]struct{ server, user, want string }{
		"plain text":    {"http://127.0.0.1:1", `{"token": "t"}`, "want https://HOST:PORT"},
		"no scheme":     {"127.0.0.1:1", `{"token": "t"}`, "want https://HOST:PORT"},
		"no credential": {"https://127.0.0.1:1", `{"username": "u", "password": "p"}`, "no credential that is supported"},
		"exec":          {"https://127.0.0.1:1", `{"exec": {"command": "x"}}`, "exec are not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "ca"), nil, 0o600))
			path := kubeconfigIn(t, dir, c.server, c.user)
			raw, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, []byte(strings.Replace(string(raw), `, "certificate-authority": "ca"`, "", 1)), 0o600))
			if _, err := Connect(Config{Kubeconfig: path}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
