package zone_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestExternalServices: proxies dial MeshExternalServices in plaintext or with TLS, as their specs require, and refuse
// servers whose certificate is not the required one. They do not dial a service that they cannot verify.
func TestExternalServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tellHost := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "host "+r.Host) })
	open, secured := httptest.NewServer(tellHost), httptest.NewTLSServer(tellHost)
	t.Cleanup(open.Close)
	t.Cleanup(secured.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secured.Certificate().Raw}))
	port := func(s *httptest.Server) int { return s.Listener.Addr().(*net.TCPAddr).Port }
	external := func(name, protocol, address string, at int, tls string) {
		w.apply(fmt.Sprintf(`{type: MeshExternalService, mesh: default, name: %s, spec: {match: {port: 443, protocol: %s}, endpoints: [{address: %s, port: %d}], tls: %s}}`,
			name, protocol, address, at, tls))
	}
	verified := func(server string) string {
		return fmt.Sprintf(`{enabled: true, verification: {serverName: %s, caCert: {inlineString: %q}}}`, server, ca)
	}
	external("clear", "http", "localhost", port(open), "{enabled: false}")
	external("tcp", "tcp", "127.0.0.1", port(open), "{}")
	external("secured", "http", "127.0.0.1", port(secured), verified("example.com"))
	external("by-address", "http", "127.0.0.1", port(secured),
		fmt.Sprintf(`{enabled: true, verification: {caCert: {inlineString: %q}}}`, ca))
	external("another", "http", "127.0.0.1", port(secured), verified("other.example.net"))
	external("unverified", "http", "127.0.0.1", port(secured), "{enabled: true}")
	external("no-such-check", "http", "127.0.0.1", port(secured),
		fmt.Sprintf(`{enabled: true, verification: {mode: SkipCA, serverName: example.com, caCert: {inlineString: %q}}}`, ca))
	external("wrong-authority", "http", "127.0.0.1", port(secured),
		fmt.Sprintf(`{enabled: true, verification: {serverName: example.com, caCert: {inlineString: %q}}}`,
			otherAuthority(t)))
	external("any-name", "http", "127.0.0.1", port(secured),
		fmt.Sprintf(`{enabled: true, verification: {mode: SkipSAN, serverName: other.example.net, caCert: {inlineString: %q}}}`, ca))
	external("anybody", "http", "127.0.0.1", port(secured), "{enabled: true, verification: {mode: SkipAll}}")
	names := []string{"clear", "tcp", "secured", "by-address", "another", "unverified", "any-name", "anybody",
		"no-such-check", "wrong-authority"}
	var refs []string
	for _, name := range names {
		refs = append(refs, "{kind: MeshExternalService, name: "+name+"}")
	}
	ports, e := w.caller("caller", refs...)
	for i, want := range []struct {
		code int
		body string
	}{
		{200, "host localhost"}, {200, ""}, {200, "host example.com"}, {200, ""}, {503, ""}, {0, ""},
		{200, "host other.example.net"}, {200, ""}, {0, ""}, {503, ""},
	} {
		eventually(t, names[i], func() bool {
			code, body := plain(ports[i], "/")
			return code == want.code && (want.body == "" || body == want.body)
		})
	}
	w.apply(`{type: MeshHTTPRoute, mesh: default, name: moved, spec: {to: [{targetRef: {kind: MeshExternalService, name: clear}, rules: [
  {matches: [{path: {type: PathPrefix, value: /secured}}], default: {backendRefs: [{kind: MeshExternalService, name: secured, port: 443}]}}]}]}}`)
	eventually(t, "a route to another external service", func() bool {
		code, body := plain(ports[0], "/secured")
		return code == 200 && body == "host example.com"
	})
	external("clear", "http", "127.0.0.1", port(secured), verified("other.example.net"))
	eventually(t, "a changed service", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusServiceUnavailable })
	e.refusedNothing()
}

// otherAuthority returns a CA, in PEM, that has signed no certificate here.
func otherAuthority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "another"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
