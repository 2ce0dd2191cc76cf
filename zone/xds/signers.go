package xds

import (
	"crypto/x509"
	"slices"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
)

// signers finds this zone's authorities for trust domains, and caches them in found.
type signers struct {
	a     *Admission
	found map[spiffeid.TrustDomain][]*x509.Certificate
}

func (s signers) of(domain spiffeid.TrustDomain) []*x509.Certificate {
	if found, ok := s.found[domain]; ok {
		return found
	}
	found := s.a.cfg.Authorities(domain)
	if s.found != nil {
		s.found[domain] = found
	}
	return found
}

// signedHere reports whether the chain of p leads to an authority of this zone that may sign for its trust domain. It
// verifies the chain again only if the authorities have changed.
func (p *pass) signedHere(known signers) bool {
	if p.admission.cfg.Authorities == nil {
		return true
	}
	id, err := x509svid.IDFromCert(p.chain[0])
	if err != nil {
		return false
	}
	authorities := known.of(id.TrustDomain())
	if p.signers != nil && slices.EqualFunc(p.signers, authorities, (*x509.Certificate).Equal) {
		return true
	}
	bundle := x509bundle.FromX509Authorities(id.TrustDomain(), authorities)
	if _, _, err = x509svid.Verify(p.chain, bundle, x509svid.WithTime(p.admission.cfg.Now())); err != nil {
		return false
	}
	p.signers = authorities
	return true
}
