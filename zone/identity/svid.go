package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Lifetime is how long an SVID is valid, unless a MeshIdentity sets less. It is renewed after half that time.
const Lifetime = 24 * time.Hour

// shortestLifetime is the shortest lifetime that a MeshIdentity can set.
const shortestLifetime = time.Minute

// SVID is an X.509-SVID. It is immutable.
type SVID struct {
	ID   spiffeid.ID
	Leaf *x509.Certificate
	// CertificatePEM holds the leaf certificate, followed by the intermediates if a provided authority signed it.
	CertificatePEM []byte
	// KeyPEM is the private key (PKCS #8); nil if the caller brought its own key.
	KeyPEM []byte
	// By is the MeshIdentity that gives the ID; nil if none does.
	By *resources.Resource
	// Authority is the id of the authority that signed it.
	Authority string
	// RenewAt is when renewal is due, by the zone's wall clock.
	RenewAt time.Time

	issued time.Time // zero if only the leaf has it
	leapt  bool      // as in validity
}

// IDOf returns a Dataplane's SPIFFE ID in a trust domain: `/ns/<namespace>/sa/<service account>` where both labels are
// there, otherwise `/workload/<workload label, or the Dataplane's own name>`. Errors wrap ErrIdentity.
func IDOf(dp *resources.Resource, domain spiffeid.TrustDomain) (spiffeid.ID, error) {
	namespace, account := dp.HomeNamespace(), dp.Labels[resources.LabelServiceAccount]
	segments := []string{"ns", namespace, "sa", account}
	if namespace == "" || account == "" {
		workload := dp.Labels[resources.LabelWorkload]
		if workload == "" {
			workload = dp.DisplayName()
		}
		segments = []string{"workload", workload}
	}
	id, err := spiffeid.FromSegments(domain, segments...)
	if err != nil {
		return id, fmt.Errorf("%w: %s: %v: %w", ErrIdentity, dp.Key, segments, err)
	}
	return id, nil
}

// WorkloadOf returns the workload of a Dataplane whose SPIFFE ID names one. It is empty if the ID names a service
// account.
func WorkloadOf(dp *resources.Resource) string {
	if dp.HomeNamespace() != "" && dp.Labels[resources.LabelServiceAccount] != "" {
		return ""
	}
	if w := dp.Labels[resources.LabelWorkload]; w != "" {
		return w
	}
	return dp.DisplayName()
}

func (a *Authority) issueWithKey(who *Assigned, before *SVID, now time.Time) (*SVID, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	svid, err := a.issue(who, key.Public(), a.validity(who, before, now))
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	svid.KeyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return svid, nil
}

// issue signs a leaf certificate whose only name is the SPIFFE ID.
func (a *Authority) issue(who *Assigned, key crypto.PublicKey, v validity) (*SVID, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		URIs:                  []*url.URL{who.ID.URL()},
		NotBefore:             v.from,
		NotAfter:              v.until,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if _, ok := key.(*rsa.PublicKey); ok {
		template.KeyUsage |= x509.KeyUsageKeyEncipherment // TLS 1.2 without a key agreement
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign for %s: %w", who.ID, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	svid := a.svid(who, leaf, nil)
	svid.issued, svid.RenewAt, svid.leapt = v.issued, v.renew, v.leapt
	return svid, nil
}

// sign issues a certificate for the key of a request.
func (a *Authority) sign(who *Assigned, csrPEM []byte, now time.Time) (*SVID, error) {
	block, rest := pem.Decode(csrPEM)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return nil, fmt.Errorf("%w: want one PEM block of type CERTIFICATE REQUEST", ErrRequest)
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := checkKey(csr.PublicKey); err != nil { // before it is used: an RSA key of a whole request takes seconds
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: it is not signed by its key: %w", ErrRequest, err)
	}
	for _, uri := range csr.URIs {
		if uri.String() != who.ID.String() {
			return nil, fmt.Errorf("%w: it asks for %s, but this Dataplane is %s", ErrRequest, uri, who.ID)
		}
	}
	return a.issue(who, csr.PublicKey, a.validity(who, nil, now))
}

// checkKey accepts the keys that current proxies and TLS libraries verify.
func checkKey(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() || k.Curve == elliptic.P384() {
			return nil
		}
		return fmt.Errorf("elliptic curve %s: want P-256 or P-384", k.Curve.Params().Name)
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < 2048 || bits > 4096 {
			return fmt.Errorf("an RSA key of %d bits: want 2048 to 4096", bits)
		}
		return nil
	case ed25519.PublicKey:
		return fmt.Errorf("an Ed25519 key: Envoy does not verify these, want ECDSA P-256")
	default:
		return fmt.Errorf("a key of type %T: want ECDSA P-256", key)
	}
}
