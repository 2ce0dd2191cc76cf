package zone_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSVIDOffLoopback: off loopback, a caller gets an identity for the credential of its own proxy, a token or the
// previous identity, but not for another proxy's. That credential permits nothing else.
func TestSVIDOffLoopback(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	z.dataplane(18080, 18081)
	z.apply("dataplanes/frontend", `{"type": "Dataplane", "mesh": "default", "name": "frontend", "networking": {"address": "127.0.0.1", "inbound": [{"name": "main", "port": 18082}]}}`)
	tokens := map[string]string{"backend": z.token(`{"dataplane": "backend"}`).Token,
		"frontend": z.token(`{"dataplane": "frontend"}`).Token}
	certificates := map[string]*tls.Certificate{"forged backend": forgedSVID(t,
		"spiffe://default.zone-1.mesh.local/workload/backend")}
	for _, name := range []string{"backend", "frontend"} {
		svid, _ := z.svid(name)
		chain := make([][]byte, 0, 1)
		for _, c := range svid.Certificates {
			chain = append(chain, c.Raw)
		}
		certificates[name] = &tls.Certificate{Certificate: chain, PrivateKey: svid.PrivateKey}
	}
	z.stop()
	z.cfg.APIAddress = "0.0.0.0:0"
	z.start()
	_, port, err := net.SplitHostPort(z.addresses["api"])
	must(t, err)
	ca, err := os.ReadFile(filepath.Join(z.cfg.DataDir, "tls", "ca.crt"))
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	body, err := json.Marshal(map[string]string{"csr": signingRequest(t)})
	must(t, err)
	ask := func(t *testing.T, token, certificate, method, path string) int {
		t.Helper()
		config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
		if c := certificates[certificate]; c != nil {
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		r, err := http.NewRequestWithContext(t.Context(), method,
			"https://127.0.0.1:"+port+"/meshes/default/dataplanes/"+path, strings.NewReader(string(body)))
		must(t, err)
		r.Header.Set("Content-Type", "application/json")
		if token := tokens[token]; token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(r)
		must(t, err)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for _, row := range []struct {
		name, token, certificate string
		method, path             string
		want                     int
	}{
		{"nothing", "", "", "POST", "backend/_svid", 401},
		{"its token", "backend", "", "POST", "backend/_svid", 200},
		{"its token, of another", "backend", "", "POST", "frontend/_svid", 403},
		{"its token, of nobody", "backend", "", "POST", "nobody/_svid", 403},
		{"its token, of its namesake", "backend", "", "POST", "backend/_svid?namespace=payments", 403},
		{"its token, elsewhere", "backend", "", "GET", "backend", 401},
		{"its token, a change", "backend", "", "PUT", "backend", 401},
		{"its identity", "", "backend", "POST", "backend/_svid", 200},
		{"its identity, of another", "", "backend", "POST", "frontend/_svid", 403},
		{"its identity, elsewhere", "", "backend", "GET", "backend", 401},
		{"an identity of its name by another authority", "", "forged backend", "POST", "backend/_svid", 403},
		{"a token beside another's identity", "backend", "frontend", "POST", "frontend/_svid", 403},
		{"another's token beside its identity", "frontend", "backend", "POST", "backend/_svid", 403},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := ask(t, row.token, row.certificate, row.method, row.path); got != row.want {
				t.Errorf("%d, want %d", got, row.want)
			}
		})
	}
	last := http.StatusOK // a proxy that asks in a loop would push everything else out of the audit log
	for i := 0; i < 100 && last == http.StatusOK; i++ {
		last = ask(t, "backend", "", "POST", "backend/_svid")
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("in a loop: %d", last)
	}
	if got := ask(t, "frontend", "", "POST", "frontend/_svid"); got != http.StatusOK {
		t.Errorf("another beside it: %d", got)
	}
}

// forgedSVID returns a certificate with the given ID that its own key has signed.
func forgedSVID(t *testing.T, id string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	name, err := url.Parse(id)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), URIs: []*url.URL{name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func signingRequest(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}
