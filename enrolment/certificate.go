package enrolment

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/kds"
)

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, err
	}
	return serial.Add(serial, big.NewInt(1)), nil
}

// Certificate describes a certificate that was just verified or signed.
type Certificate struct {
	ZoneIdentity
	Serial, Authority string
	Issued, Expires   time.Time
}

// Sign signs a zone certificate for the key of its request.
func (a *Authority) Sign(ctx context.Context, m ZoneIdentity, request *x509.CertificateRequest) (der []byte, held Certificate,
	err error) {
	if err := checkZoneKey(request.PublicKey); err != nil {
		return nil, held, err
	}
	ring, _, err := a.Current(ctx)
	if err != nil {
		return nil, held, err
	}
	ca, now := ring[len(ring)-1], a.now()
	serial, err := newSerial()
	if err != nil {
		return nil, held, err
	}
	expires := now.Add(a.lifetime).Truncate(time.Second)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: m.Zone}, URIs: []*url.URL{m.URI()},
		NotBefore: now.Add(-datedBack), NotAfter: expires,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err = x509.CreateCertificate(rand.Reader, template, ca.Cert, request.PublicKey, ca.key)
	return der, Certificate{ZoneIdentity: m, Serial: serial.Text(16), Authority: ca.ID, Issued: now, Expires: expires}, err
}

// checkZoneKey accepts the kinds of keys that Causeway's zones create.
func checkZoneKey(key any) error {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() || k.Curve == elliptic.P384() {
			return nil
		}
	case ed25519.PublicKey:
		return nil
	}
	return fmt.Errorf("%w: the signing request's key: want ECDSA P-256, ECDSA P-384 or Ed25519", kds.ErrRequest)
}

// Expired returns the error for an expired certificate. It shows the global's clock, so that a wrong clock is easy to
// see.
func Expired(end, now time.Time) error {
	return fmt.Errorf("%w: the zone's certificate has expired at %s: make a new join string for it, unless the global's clock is wrong, which says %s",
		kds.ErrUnauthenticated, end.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
}

// signed reports whether the authority signed a zone's certificate that has not expired now. The validity of either may
// begin after now: this server issued both, and its clock has been set back since.
func (ca *CA) signed(leaf *x509.Certificate, now time.Time) bool {
	for _, begins := range []time.Time{leaf.NotBefore, ca.Cert.NotBefore} {
		if now.Before(begins) {
			now = begins
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}

// Verify verifies the certificates that a zone presented. Errors wrap kds.ErrUnauthenticated.
func (a *Authority) Verify(ctx context.Context, shown []*x509.Certificate) (held Certificate, err error) {
	ring, _, err := a.Current(ctx)
	if err != nil {
		return held, err
	}
	leaf, now := shown[0], a.now()
	if now.After(leaf.NotAfter) {
		return held, Expired(leaf.NotAfter, now)
	}
	issuer := slices.IndexFunc(ring, func(ca CA) bool { return ca.signed(leaf, now) })
	if issuer < 0 {
		return held, fmt.Errorf("%w: the certificate is not of this global's zone CA", kds.ErrUnauthenticated)
	}
	if held.ZoneIdentity, err = parseZoneURI(leaf.URIs); err != nil {
		return held, fmt.Errorf("%w: the certificate names no zone", kds.ErrUnauthenticated)
	}
	held.Serial, held.Authority = leaf.SerialNumber.Text(16), ring[issuer].ID
	held.Issued, held.Expires = leaf.NotBefore.Add(datedBack), leaf.NotAfter
	return held, nil
}
