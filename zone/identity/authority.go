package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
)

const (
	// authorityLifetime is long: an operator replaces an authority deliberately; it must not expire overnight.
	authorityLifetime = 10 * 365 * 24 * time.Hour
	// skew is how far a verifier's clock may be behind this server's.
	skew = 5 * time.Minute
)

// Authority signs the identities of one mesh in this zone. It is immutable and safe for concurrent use.
type Authority struct {
	domain spiffeid.TrustDomain
	cert   *x509.Certificate
	key    crypto.Signer
	// anchors are the certificates that peers verify its certificates with: its own certificate, or the root above it.
	anchors []*x509.Certificate
	pem     []byte
	// chain is sent along with its certificates: from its own certificate up to the last below the root. provided
	// reports that the operator provided the authority.
	chain    []*x509.Certificate
	provided bool
	// unaware names the zones that were away when it began to sign.
	unaware []string
	id      string
	state   State
	since   time.Time
}

// TrustDomainOf returns the trust domain of a mesh in a zone: `<mesh>.<zone>.mesh.local`.
func TrustDomainOf(mesh, zone string) (spiffeid.TrustDomain, error) {
	td, err := spiffeid.TrustDomainFromString(resources.ZoneTrustDomain(mesh, zone))
	if err != nil {
		return td, fmt.Errorf("%w: mesh %q, zone %q: %w", ErrIdentity, mesh, zone, err)
	}
	return td, nil
}

const trustDomainSuffix = resources.TrustDomainSuffix

// TrustDomain returns the trust domain that the authority signs for.
func (a *Authority) TrustDomain() spiffeid.TrustDomain { return a.domain }

// Certificate returns the authority's own certificate. The caller must not change it.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// ID returns the authority's id, unique among those of its mesh.
func (a *Authority) ID() string { return a.id }

// State returns the authority's state.
func (a *Authority) State() State { return a.state }

// Since returns when the authority entered its state.
func (a *Authority) Since() time.Time { return a.since }

// PEM returns the certificates that peers verify its certificates with: its own certificate, or the root above it. The
// caller must not change it.
func (a *Authority) PEM() []byte { return a.pem }

// Created returns when the zone made the authority; of one that an operator provided, when its certificate begins.
func (a *Authority) Created() time.Time {
	if a.provided {
		return a.cert.NotBefore
	}
	return a.cert.NotBefore.Add(skew)
}

// Provided reports whether an operator provided the authority. Otherwise the zone made it.
func (a *Authority) Provided() bool { return a.provided }

// Unaware returns the zones that were away when it began to sign; they may have learned of it since. The caller must
// not change the slice.
func (a *Authority) Unaware() []string { return a.unaware }

// Algorithm returns the algorithm that it signs with.
func (a *Authority) Algorithm() string { return algorithm(a.cert.PublicKey) }

// newAuthority makes a key and a self-signed certificate for a trust domain.
func newAuthority(domain spiffeid.TrustDomain, now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{Organization: []string{"Causeway"}, CommonName: domain.Name()},
		URIs:                  []*url.URL{domain.ID().URL()},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(authorityLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return authorityOf(domain, der, key)
}

// authorityOf checks that certificate and key belong together and form an authority of the trust domain.
func authorityOf(domain spiffeid.TrustDomain, der []byte, key crypto.Signer) (*Authority, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	pub, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok || !pub.Equal(key.Public()) {
		return nil, fmt.Errorf("the key is not the certificate's")
	}
	if !cert.IsCA || cert.KeyUsage&x509.KeyUsageCertSign == 0 {
		return nil, fmt.Errorf("the certificate may not sign others")
	}
	if len(cert.URIs) != 1 || cert.URIs[0].String() != domain.IDString() {
		return nil, fmt.Errorf("the certificate is for %v, not for %s", cert.URIs, domain.IDString())
	}
	return &Authority{
		domain: domain, cert: cert, key: key, anchors: []*x509.Certificate{cert}, id: idOf(der),
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

// newSerial returns a random positive serial number of 127 bits.
func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return n.Add(n, big.NewInt(1)), nil
}
