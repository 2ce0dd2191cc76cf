package identity

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// maxChain bounds the certificates of a provided authority, including its root.
const maxChain = 6

// Provision is an authority that an operator provides. A faulty one is refused with ErrProvided; no error reveals any
// of the key.
type Provision struct {
	// Certificates is PEM: the signing authority's certificate, then those above it, the root last.
	Certificates []byte
	// Key is PEM, not encrypted: the private key of the first certificate, ECDSA on P-256 or P-384, or RSA of 2048 to
	// 4096 bits.
	Key []byte
	// AllowSelfSigned allows the first certificate to be the root itself.
	AllowSelfSigned bool
}

// read makes the checks that verifiers make: the key belongs to the certificate, the certificate may sign, and what it
// signs for the trust domain verifies up to the root, for clients and for servers.
func (p *Provision) read(domain spiffeid.TrustDomain, now time.Time) (*Authority, error) {
	chain, err := parseAuthorities(p.Certificates)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: certificates: %w", ErrProvided, err)
	case len(chain) == 0 || len(chain) > maxChain:
		return nil, fmt.Errorf("%w: certificates: got %d, want the authority's, those above it and last the root, at most %d", ErrProvided, len(chain), maxChain)
	}
	key, err := parseKey(p.Key)
	if err != nil {
		return nil, fmt.Errorf("%w: key: %w", ErrProvided, err)
	}
	if len(chain) == 1 && selfSigned(chain[0]) && !p.AllowSelfSigned {
		return nil, fmt.Errorf("%w: certificates: %q is a root: give an intermediate, so that the root's key stays elsewhere, or allow a self-signed one", ErrProvided, chain[0].Subject)
	}
	a, err := providedAuthority(domain, chain, key)
	if err == nil {
		err = a.check(now)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: certificates: %w", ErrProvided, err)
	}
	return a, nil
}

// parseKey reads a private key in any of the forms that openssl writes. Its errors contain none of the text.
func parseKey(text []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(text)
	if block != nil && block.Type == "EC PARAMETERS" {
		block, rest = pem.Decode(rest)
	}
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("want one PEM block with a private key, and nothing else")
	}
	if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
		return nil, errors.New("it is encrypted: decrypt it; the zone seals it with its own key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	}
	if err != nil {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	key, ok := parsed.(crypto.Signer)
	if err != nil || !ok {
		return nil, fmt.Errorf("the block %q holds no private key that can be read", block.Type)
	}
	return key, checkKey(key.Public())
}

func selfSigned(c *x509.Certificate) bool {
	return string(c.RawIssuer) == string(c.RawSubject) && c.CheckSignatureFrom(c) == nil
}

// providedAuthority returns an authority whose chain ends with its root; check verifies the chain.
func providedAuthority(domain spiffeid.TrustDomain, chain []*x509.Certificate, key crypto.Signer) (*Authority, error) {
	first, root := chain[0], chain[len(chain)-1]
	pub, ok := first.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok || !pub.Equal(key.Public()):
		return nil, fmt.Errorf("the key is not that of %q, the first", first.Subject)
	case !first.IsCA || !first.BasicConstraintsValid || first.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, fmt.Errorf("%q may not sign others: want basic constraints with CA, and the key usage keyCertSign",
			first.Subject)
	case len(first.URIs) > 1 || len(first.URIs) == 1 && first.URIs[0].String() != domain.IDString():
		return nil, fmt.Errorf("%q is for %v, not for %s", first.Subject, first.URIs, domain.IDString())
	case !selfSigned(root):
		return nil, fmt.Errorf("the chain ends with %q, which %q has signed: add the certificates up to the root",
			root.Subject, root.Issuer)
	}
	a := &Authority{
		domain: domain, cert: first, key: key, anchors: []*x509.Certificate{root}, chain: chain[:len(chain)-1],
		id: idOf(first.Raw), provided: true,
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}),
	}
	return a, nil
}

// check signs a certificate as for a workload, and verifies it as its peers do.
func (a *Authority) check(now time.Time) error {
	for _, c := range append(slices.Clone(a.chain), a.anchors...) {
		if now.After(c.NotAfter) {
			return fmt.Errorf("%q expired on %s", c.Subject, c.NotAfter.Format(time.RFC3339))
		}
		if now.Before(c.NotBefore.Add(-skew)) {
			return fmt.Errorf("%q is not valid before %s", c.Subject, c.NotBefore.Format(time.RFC3339))
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	id, err := spiffeid.FromSegments(a.domain, "check")
	if err != nil {
		return err
	}
	who := &Assigned{ID: id, Lifetime: Lifetime}
	svid, err := a.issue(who, key.Public(), a.validity(who, nil, now))
	if err != nil {
		return err
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range a.anchors {
		roots.AddCert(c)
	}
	for _, c := range a.chain {
		between.AddCert(c)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := svid.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now,
			KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil {
			return fmt.Errorf("what %q signs for %s is not verified by the root: %s", a.cert.Subject,
				a.domain.IDString(), reasonOf(err))
		}
	}
	return nil
}

// reasonOf returns the reason in terms that an operator can act on.
func reasonOf(err error) string {
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	switch invalid.Reason {
	case x509.TooManyIntermediates:
		return "the path length of an authority above it forbids one more below"
	case x509.CANotAuthorizedForThisName:
		return "name constraints do not permit it: " + invalid.Detail
	case x509.IncompatibleUsage:
		return "an extended key usage of an authority leaves out clients or servers: want both, or none"
	}
	return err.Error()
}

// Import makes a provided authority the next of a mesh domain, as Prepare does with a generated one, and returns its
// id. If the mesh domain already has the authority, it stays in its state, except that an accepted one becomes the next
// again. Errors: ErrProvided, ErrRotation.
func (a *Authorities) Import(ctx context.Context, meshDomain string, p *Provision) (id string, err error) {
	domain, err := domainOf(meshDomain, a.cfg.Zone)
	if err != nil {
		return "", err
	}
	given, err := p.read(domain, a.cfg.Now())
	if err != nil {
		return "", err
	}
	next, err := keep(given, Next, a.cfg.Now())
	if err != nil {
		return "", err
	}
	return given.id, a.addNext(ctx, meshDomain, given.id, next)
}

// algorithm returns a readable name of a key's signature algorithm.
func algorithm(key crypto.PublicKey) string {
	if _, ok := key.(*rsa.PublicKey); ok {
		return "RSA"
	}
	return "ECDSA"
}
