package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// Kept returns an SVID with its key in the form that Resume reads: the certificate, then the key, both in DER. It is
// nil if the key is not here. It is as secret as the key.
func (s *SVID) Kept() []byte {
	block, _ := pem.Decode(s.KeyPEM)
	if block == nil {
		return nil
	}
	return slices.Concat(s.Leaf.Raw, block.Bytes)
}

// Issued returns when the SVID was signed.
func (s *SVID) Issued() time.Time {
	if !s.issued.IsZero() {
		return s.issued
	}
	return s.Leaf.NotBefore.Add(skew)
}

// Resume returns the SVID that was kept for a Dataplane of this zone, with the same bytes, if Issue would return the
// same apart from key and times: the current signing authority signed it, for the Dataplane's current identity and at
// most its current lifetime, and it is not due for renewal. Errors wrap ErrUnreadable, ErrOtherIdentity,
// ErrOtherAuthority or ErrDue, or are those of Issue.
func (a *Authorities) Resume(dp *resources.Resource, kept []byte) (*SVID, error) {
	leaf, key, err := readKept(kept)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	authority, who, err := a.forDataplane(dp)
	if err != nil {
		return nil, err
	}
	svid := authority.svid(&who, leaf, key)
	a.mu.Lock()
	a.leaps.restore(svid)
	a.mu.Unlock()
	if err := svid.isOf(&who); err != nil {
		return nil, err
	}
	if err := authority.signed(leaf); err != nil {
		return nil, fmt.Errorf("%w than %s: %w", ErrOtherAuthority, authority.id, err)
	}
	if now := a.cfg.Now(); now.Before(svid.Issued().Add(-skew)) || !now.Before(svid.RenewAt) {
		return nil, fmt.Errorf("%w: it is valid from %s, and due for renewal at %s", ErrDue, leaf.NotBefore.Format(time.RFC3339),
			svid.RenewAt.Format(time.RFC3339))
	}
	return svid, nil
}

// readKept parses what Kept returns.
func readKept(kept []byte) (*x509.Certificate, []byte, error) {
	var first asn1.RawValue
	key, err := asn1.Unmarshal(kept, &first)
	if err != nil {
		return nil, nil, fmt.Errorf("it does not begin with a certificate")
	}
	leaf, err := x509.ParseCertificate(first.FullBytes)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("its key cannot be read") // the parser's error might quote it
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() || !private.PublicKey.Equal(leaf.PublicKey) {
		return nil, nil, fmt.Errorf("the key is not the certificate's")
	}
	if again, err := x509.MarshalPKCS8PrivateKey(private); err != nil || !bytes.Equal(again, key) {
		return nil, nil, fmt.Errorf("its key is encoded differently")
	}
	return leaf, key, nil
}

// isOf checks that the certificate has the contents that issue would give it.
func (s *SVID) isOf(who *Assigned) error {
	leaf := s.Leaf
	if len(leaf.URIs) != 1 || leaf.URIs[0].String() != who.ID.String() || len(leaf.DNSNames)+len(leaf.EmailAddresses)+
		len(leaf.IPAddresses) > 0 {
		return fmt.Errorf("%w: it is for %v, and would be for %s", ErrOtherIdentity, leaf.URIs, who.ID)
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if leaf.IsCA || leaf.KeyUsage != x509.KeyUsageDigitalSignature || !slices.Equal(leaf.ExtKeyUsage, usages) {
		return fmt.Errorf("%w: it may be used for another purpose", ErrOtherIdentity)
	}
	if life := leaf.NotAfter.Sub(s.Issued()); life > who.Lifetime+time.Second && !s.leapt {
		return fmt.Errorf("%w: it is valid for %s, and would be for %s", ErrOtherIdentity, life, who.Lifetime)
	}
	return nil
}

// signed checks that the authority signed a leaf, in a way that a verifier accepts.
func (a *Authority) signed(leaf *x509.Certificate) error {
	switch {
	case !bytes.Equal(leaf.RawIssuer, a.cert.RawSubject), !bytes.Equal(leaf.AuthorityKeyId, a.cert.SubjectKeyId):
		return fmt.Errorf("it names %s as issuer", leaf.Issuer)
	case leaf.NotAfter.After(a.cert.NotAfter):
		return fmt.Errorf("it is valid for longer than the authority")
	}
	return leaf.CheckSignatureFrom(a.cert)
}

// svid returns the SVID of a leaf that the authority signed, with the chain sent along. keyDER is PKCS #8, nil if the
// key is not here.
func (a *Authority) svid(who *Assigned, leaf *x509.Certificate, keyDER []byte) *SVID {
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
	for _, c := range a.chain {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	out := &SVID{ID: who.ID, By: who.By, Leaf: leaf, Authority: a.id, CertificatePEM: chain}
	out.RenewAt = out.Issued().Add(leaf.NotAfter.Sub(out.Issued()) / 2)
	if keyDER != nil {
		out.KeyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	}
	return out
}
