package zone_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/zone"
)

// testCA signs certificates that no zone would.
type testCA struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newTestCA(t *testing.T) *testCA {
	t.Helper()
	ca := &testCA{t: t}
	template := ca.template()
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	var err error
	ca.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, template, ca.key.Public(), ca.key)
	must(t, err)
	ca.cert, err = x509.ParseCertificate(der)
	must(t, err)
	return ca
}

func (ca *testCA) template() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
	}
}

func (ca *testCA) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}))
}

// certificate returns a certificate with any number of URI SANs.
func (ca *testCA) certificate(uris ...string) *tls.Certificate {
	ca.t.Helper()
	return ca.sign(ca.template(), uris...)
}

// sign returns a certificate that a template makes, for a client with URI SANs.
func (ca *testCA) sign(template *x509.Certificate, uris ...string) *tls.Certificate {
	ca.t.Helper()
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, u := range uris {
		parsed, err := url.Parse(u)
		must(ca.t, err)
		template.URIs = append(template.URIs, parsed)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(ca.t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	must(ca.t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// plaintext sends an HTTP request without TLS and reports whether it received an answer.
func plaintext(port int) bool {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	fmt.Fprint(conn, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return true
}

func TestWhoReachesTheApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, hits := application(t)
	port := freePort(t)
	company, foreign := newTestCA(t), newTestCA(t)
	quoted, err := json.Marshal(company.pem())
	must(t, err)
	w.home.Zone = "" // from the global: any trust domain
	w.apply(fmt.Sprintf(`{type: MeshTrust, mesh: default, name: company, spec: {trustDomain: company.example, caBundles: [{type: Pem, pem: {value: %s}}]}}`, quoted))
	w.home.Zone = "zone-1"
	w.httpDataplane("backend", port, service)
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: all, spec: {targetRef: {kind: Mesh}, rules: [{default: {
  deny: [{spiffeId: {type: Exact, value: "spiffe://company.example/mallory"}}],
  allow: [{spiffeId: {type: Prefix, value: "spiffe://"}}]}}]}}`)
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	ours := w.client("alice")
	eventually(t, "alice allowed", func() bool { return status(ours, port) == http.StatusOK })

	for _, c := range []struct {
		name        string
		certificate *tls.Certificate
		want        int // 0: the handshake fails
	}{
		{"another trust domain", company.certificate("spiffe://company.example/bob"), 200},
		{"denied by name", company.certificate("spiffe://company.example/mallory"), 403},
		{"two URI SANs", company.certificate("spiffe://company.example/bob", "spiffe://company.example/carol"), 403},
		{"two URI SANs, one denied", company.certificate("spiffe://company.example/mallory",
			"spiffe://company.example/bob"), 403},
		{"no certificate", nil, 0},
		{"no URI SAN", company.certificate(), 0},
		{"foreign CA", foreign.certificate("spiffe://default.zone-1.mesh.local/workload/alice"), 0},
		{"foreign CA, its own domain", foreign.certificate("spiffe://foreign.example/bob"), 0},
		{"a trusted CA for another's domain", company.certificate("spiffe://default.zone-1.mesh.local/workload/alice"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := hits()
			if got := status(httpClient(c.certificate), port); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			if reached := hits() > before; reached != (c.want == 200) {
				t.Errorf("the application was reached: %v", reached)
			}
		})
	}
	t.Run("plaintext", func(t *testing.T) {
		before := hits()
		if plaintext(port) || hits() != before {
			t.Error("plaintext got an answer")
		}
	})
}
