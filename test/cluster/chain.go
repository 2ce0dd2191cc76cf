package cluster

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
)

// NewRoot creates a root CA like an operator's, without a trust domain.
func NewRoot() (*Authority, error) { return newAuthority("root", nil) }

// Intermediate creates an authority below this one. It may sign for the given trust domains, or for all if none are
// given.
func (a *Authority) Intermediate(name string, domains ...string) (*Authority, error) {
	return newAuthority(name, a, domains...)
}

func newAuthority(name string, above *Authority, domains ...string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedURIDomains: domains, PermittedDNSDomainsCritical: len(domains) > 0,
	}
	out, parent, signer := &Authority{key: key}, template, key
	if above != nil {
		out.above = append([]*x509.Certificate{above.cert}, above.above...)
		parent, signer = above.cert, above.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	out.cert, err = x509.ParseCertificate(der)
	return out, err
}

// Trusting returns a copy of the authority whose forged clients trust bundles.
func (a *Authority) Trusting(bundles *x509bundle.Set) *Authority {
	c := *a
	c.bundles = bundles
	return &c
}

// WriteFiles writes the authority's certificates up to the root, and its key, as PEM.
func (a *Authority) WriteFiles(dir string) (certificates, key string, err error) {
	var chain bytes.Buffer
	for _, c := range append([]*x509.Certificate{a.cert}, a.above...) {
		chain.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return "", "", err
	}
	certificates, key = filepath.Join(dir, a.cert.Subject.CommonName+".pem"),
		filepath.Join(dir, a.cert.Subject.CommonName+".key")
	if err := os.WriteFile(certificates, chain.Bytes(), 0o600); err != nil {
		return "", "", err
	}
	return certificates, key, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// Signed reports whether the authority signed an identity.
func (a *Authority) Signed(id *Identity) bool {
	leaf, err := x509.ParseCertificate(id.Certificate.Certificate[0])
	return err == nil && leaf.CheckSignatureFrom(a.cert) == nil
}
