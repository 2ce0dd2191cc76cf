package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

func fuzzAuthority(f *testing.F) *Authority {
	f.Helper()
	a, err := newAuthority(spiffeid.RequireTrustDomainFromString("default.zone-1.mesh.local"), time.Now())
	if err != nil {
		f.Fatal(err)
	}
	return a
}

// FuzzSign checks that any request is refused, or answered with a certificate that has only the intended ID.
func FuzzSign(f *testing.F) {
	a := fuzzAuthority(f)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"))
	id := spiffeid.RequireFromSegments(a.domain, "workload", "backend")
	f.Fuzz(func(t *testing.T, csr []byte) {
		svid, err := a.sign(&Assigned{ID: id, Lifetime: Lifetime}, csr, time.Now())
		if err != nil {
			if !errors.Is(err, ErrRequest) {
				t.Errorf("not the request's fault: %v", err)
			}
			return
		}
		if len(svid.Leaf.URIs) != 1 || svid.Leaf.URIs[0].String() != id.String() || svid.Leaf.IsCA {
			t.Errorf("signed %v", svid.Leaf.URIs)
		}
	})
}

// FuzzBundle checks that a bundle from a peer is refused, or contains only authorities.
func FuzzBundle(f *testing.F) {
	f.Add(fuzzAuthority(f).PEM())
	f.Fuzz(func(t *testing.T, text []byte) {
		certs, err := parseAuthorities(text)
		for _, c := range certs {
			if err == nil && !c.IsCA {
				t.Error("not an authority")
			}
		}
	})
}
