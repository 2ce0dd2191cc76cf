package zone_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone"
)

// serverCertificate returns a certificate for names that signs itself, with its key, in one PEM text.
func serverCertificate(t *testing.T, serial int64, names ...string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...)
}

func (w *world) secret(name string, plain []byte) {
	w.t.Helper()
	_, err := w.keeper.PutNamed(w.t.Context(), secrets.Named{Mesh: "default", Name: name}, plain)
	must(w.t, err)
}

// shakes returns the serial number of the certificate with which a port answers a server name.
func shakes(port int, name string, protocols ...string) (serial int64, protocol string, err error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", fmt.Sprintf("127.0.0.1:%d", port),
		&tls.Config{InsecureSkipVerify: true, ServerName: name, NextProtos: protocols})
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	state := conn.ConnectionState()
	return state.PeerCertificates[0].SerialNumber.Int64(), state.NegotiatedProtocol, nil
}

// secure returns a client that asks for a server name and believes any certificate.
func secure(name string) *http.Client {
	c := outsider()
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true, ServerName: name}
	c.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	return c
}

// TestGatewayTerminatesTLS: each hostname answers with its own certificate from the zone's sealed secrets. A renewed one
// moves no listener; a hostname whose secret is not there, or goes, is not served, and costs the others nothing.
func TestGatewayTerminatesTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	w.handler("shop", "shop", answers("shop"))
	w.handler("blog", "blog", answers("blog"))
	w.secret("shop", serverCertificate(t, 1, "shop.example"))
	w.secret("wild", serverCertificate(t, 2, "*.example"))
	port := freePort(t)
	https := func(host, secret string) string {
		return fmt.Sprintf("{port: %d, protocol: HTTPS, hostname: %q, tls: {mode: TERMINATE, certificates: [{secret: %s}]}}", port, host, secret)
	}
	e := w.gateway(https("shop.example", "shop"), https("*.example", "wild"), https("late.example", "late"))
	w.route("web", `, hostnames: [shop.example]`, to("/", "shop"))
	w.route("rest", "", to("/", "blog"))
	serial := func(name string) int64 {
		n, _, _ := shakes(port, name)
		return n
	}
	eventually(t, "the certificate of the shop", func() bool { return serial("shop.example") == 1 })
	eventually(t, "the other certificate", func() bool { return serial("x.example") == 2 })
	eventually(t, "the insight", func() bool {
		return strings.Contains(w.gatewayProblems(), "conf.listeners[2].tls.certificates[0]: not served")
	})
	if got := serial("example.org"); got != 0 {
		t.Errorf("a host of nobody's is answered with %d", got)
	}
	eventually(t, "the shop", func() bool {
		code, body := askGateway(secure("shop.example"), "https", port, "shop.example", "/x")
		return code == http.StatusOK && body == "shop /x"
	})
	for _, tt := range []struct{ name, host, want string }{
		{"x.example", "x.example", "blog"}, {"x.example", "shop.example", ""}, {"shop.example", "x.example", ""},
		{"SHOP.Example", "shop.Example:8443", "shop"}, {"shop.example", "shop.example.", "shop"}, {"x.example", "SHOP.EXAMPLE.", ""},
		{"x.example", "late.example", ""}, {"x.example", "nobody.test", ""}, {"shop.example", "a.shop.example", ""},
	} {
		// The host of a request is not that of another listener, whatever the handshake asked for.
		code, body := askGateway(secure(tt.name), "https", port, tt.host, "/")
		if tt.want == "" && code != http.StatusMisdirectedRequest || tt.want != "" && !strings.HasPrefix(body, tt.want) {
			t.Errorf("%s, then %s: %d %s", tt.name, tt.host, code, body)
		}
	}
	if _, protocol, err := shakes(port, "shop.example", "h2", "http/1.1"); protocol != "h2" {
		t.Errorf("speaks %q: %v", protocol, err)
	}
	if code, _ := askGateway(outsider(), "http", port, "shop.example", "/"); code != 0 {
		t.Errorf("a client in the clear got %d", code)
	}

	before := e.listeners()
	w.secret("shop", serverCertificate(t, 3, "shop.example"))
	eventually(t, "the renewed certificate", func() bool { return serial("shop.example") == 3 })
	w.secret("shop", []byte("half a certificate"))
	eventually(t, "the insight", func() bool { return strings.Contains(w.gatewayProblems(), "served with the last one") })
	if got := serial("shop.example"); got != 3 {
		t.Errorf("a text that is no certificate: answered with %d", got)
	}
	if after := e.listeners(); !maps.Equal(before, after) {
		t.Errorf("a renewal moved listeners: %v, then %v", before, after)
	}
	w.secret("late", serverCertificate(t, 4, "late.example"))
	eventually(t, "the late certificate", func() bool { return serial("late.example") == 4 })
	must(t, w.keeper.DeleteNamed(t.Context(), secrets.Named{Mesh: "default", Name: "late"}))
	eventually(t, "the wildcard again", func() bool { return serial("late.example") == 2 })
	if dump := e.get("/config_dump"); strings.Contains(dump, "BEGIN PRIVATE KEY") || strings.Contains(dump, "QkVHSU4gUFJJVkFURSBLRVk") {
		t.Error("the admin interface shows a key")
	}
	e.refusedNothing()
}

// TestGatewayBesideAnUnroutedCertificate: a listener with a certificate that no route sends anywhere is not there, and
// holds up no routes of the others.
func TestGatewayBesideAnUnroutedCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	w.handler("backend", "backend", answers("backend"))
	w.secret("idle", serverCertificate(t, 1, "idle.example"))
	port := freePort(t)
	e := w.gateway(fmt.Sprintf("{port: %d, protocol: HTTP}", port),
		fmt.Sprintf("{port: %d, protocol: TLS, hostname: idle.example, tls: {mode: TERMINATE, certificates: [{secret: idle}]}}", freePort(t)))
	w.route("web", "", to("/", "backend"))
	w.gets(port, "a.example", "/x", http.StatusOK, "backend /x")
	w.route("web", "", to("/y", "backend"))
	w.gets(port, "a.example", "/x", http.StatusNotFound, "")
	e.refusedNothing()
}

// TestGatewayPassesTLSOn: a listener with PASSTHROUGH sends connections by the server name of the handshake, and the
// service has the certificate; one of TLS that terminates sends what it decrypts.
func TestGatewayPassesTLSOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowAll()
	w.secret("ends", serverCertificate(t, 7, "ends.example"))
	bundle := serverCertificate(t, 9, "own.example")
	own := keyPair(t, bundle, bundle)
	srv := httptest.NewUnstartedServer(answers("own"))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{*own}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	plainTCP, _ := speaksFirst(t)
	for name, service := range map[string]int{"own": srv.Listener.Addr().(*net.TCPAddr).Port, "ends": plainTCP} {
		w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %[1]s, labels: {app: %[1]s}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %[2]d, servicePort: %[3]d, protocol: tcp}]}}
---
{type: MeshService, mesh: default, name: %[1]s, spec: {selector: {dataplaneLabels: {matchLabels: {app: %[1]s}}}, ports: [{name: tcp, port: 80, targetPort: main, appProtocol: tcp}]}}
---
{type: MeshTCPRoute, mesh: default, name: %[1]s, spec: {targetRef: {kind: MeshGateway, name: edge, tags: {host: %[1]s}}, to: [{targetRef: {kind: Mesh}, rules: [{default: {backendRefs: [{kind: MeshService, name: %[1]s}]}}]}]}}`,
			name, freePort(t), service))
		w.startEnvoy(zone.BootstrapConfig{Dataplane: name})
	}
	port := freePort(t)
	e := w.gateway(fmt.Sprintf(`{port: %d, protocol: HTTPS, hostname: "*.own.example", tags: {host: own}, tls: {mode: PASSTHROUGH}}`, port),
		fmt.Sprintf("{port: %d, protocol: TLS, hostname: ends.example, tags: {host: ends}, tls: {mode: TERMINATE, certificates: [{secret: ends}]}}", port))
	eventually(t, "the service's own certificate", func() bool { n, _, _ := shakes(port, "a.own.example"); return n == 9 })
	eventually(t, "the service", func() bool {
		code, body := askGateway(secure("a.own.example"), "https", port, "a.own.example", "/x")
		return code == http.StatusOK && body == "own /x"
	})
	eventually(t, "the bytes within TLS", func() bool {
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", fmt.Sprintf("127.0.0.1:%d", port),
			&tls.Config{InsecureSkipVerify: true, ServerName: "ends.example"})
		if err != nil {
			return false
		}
		return talks(conn, nil) == nil
	})
	if n, _, err := shakes(port, "own.example"); err == nil {
		t.Errorf("a name of nobody's is answered with %d", n)
	}
	e.refusedNothing()
}
