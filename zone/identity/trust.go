package identity

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Bundles holds the certificate authorities that a mesh trusts, by trust domain. It is immutable.
type Bundles struct {
	domains map[spiffeid.TrustDomain][]*x509.Certificate
	// Refused are the MeshTrusts that are ignored, in full or in part, with the reason.
	Refused []Refusal
}

// Refusal is the reason why a MeshTrust is not trusted.
type Refusal struct {
	Trust  *resources.Resource
	Reason error
}

// BundlesOf collects the bundles of all MeshTrusts of a mesh. A zone's MeshTrust may speak only for trust domains of
// that zone, `*.<zone>.mesh.local`, and for those that a MeshIdentity of the global grants it: otherwise one zone could
// forge identities of another. MeshTrusts of the global may name any. Several for one trust domain add up. One that
// this server, home, keeps in a namespace of its own is not believed, whenever it was written.
func BundlesOf(snap store.Snapshot, mesh string, home resources.Home) *Bundles {
	b := &Bundles{domains: map[spiffeid.TrustDomain][]*x509.Certificate{}}
	given := GrantsIn(snap, mesh)
	for r := range snap.List(store.Query{Type: resources.TypeMeshTrust, Mesh: mesh}) {
		domain, certs, err := readTrust(r, given, home)
		if err != nil {
			b.Refused = append(b.Refused, Refusal{Trust: r, Reason: err})
			continue
		}
		for _, c := range certs {
			if !slices.ContainsFunc(b.domains[domain], c.Equal) {
				b.domains[domain] = append(b.domains[domain], c)
			}
		}
	}
	for _, certs := range b.domains {
		slices.SortFunc(certs, func(x, y *x509.Certificate) int { return bytes.Compare(x.Raw, y.Raw) })
	}
	return b
}

// Domains lists the trust domains in alphabetical order.
func (b *Bundles) Domains() []spiffeid.TrustDomain {
	out := make([]spiffeid.TrustDomain, 0, len(b.domains))
	for d := range b.domains {
		out = append(out, d)
	}
	slices.SortFunc(out, spiffeid.TrustDomain.Compare)
	return out
}

// Certificates returns the authorities of a trust domain. The caller must not change the slice.
func (b *Bundles) Certificates(d spiffeid.TrustDomain) []*x509.Certificate { return b.domains[d] }

// Has reports whether certificates signed by an authority are trusted.
func (b *Bundles) Has(a *Authority) bool {
	return !slices.ContainsFunc(a.anchors, func(anchor *x509.Certificate) bool {
		return !slices.ContainsFunc(b.domains[a.domain], anchor.Equal)
	})
}

// PEM returns the authorities of a trust domain as PEM, always in the same order.
func (b *Bundles) PEM(d spiffeid.TrustDomain) []byte {
	var out bytes.Buffer
	for _, c := range b.domains[d] {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	return out.Bytes()
}

// CheckTrust returns the reason why a MeshTrust has no effect on home, given the resources in its store, or nil.
func CheckTrust(snap store.Snapshot, r *resources.Resource, home resources.Home) error {
	_, _, err := readTrust(r, GrantsIn(snap, r.Mesh), home)
	return err
}

// readTrust returns the trust domain and the authorities of a MeshTrust, if it may speak for that domain.
func readTrust(r *resources.Resource, given Grants, home resources.Home) (spiffeid.TrustDomain,
	[]*x509.Certificate, error) {
	if home.Misplaced(r) {
		return spiffeid.TrustDomain{}, nil, fmt.Errorf("namespace: a %s lives in the system namespace only, not in %s: delete it, and write it there", r.Type, r.Namespace)
	}
	spec, err := resources.SpecAs[resources.MeshTrust](r)
	if err != nil {
		return spiffeid.TrustDomain{}, nil, err
	}
	domain, err := spiffeid.TrustDomainFromString(spec.TrustDomain)
	if err != nil {
		return domain, nil, fmt.Errorf("trustDomain: %w", err)
	}
	if zone := r.Zone(); !given.MaySpeak(zone, domain.Name()) {
		return domain, nil, fmt.Errorf("trustDomain: zone %q may only speak for *.%s%s, not for %s, unless a MeshIdentity of the global grants it that trust domain",
			zone, zone, trustDomainSuffix, domain.Name())
	}
	var certs []*x509.Certificate
	for i, bundle := range spec.CABundles {
		if bundle.Type != resources.CABundlePEM || bundle.PEM == nil {
			return domain, nil, fmt.Errorf("caBundles[%d]: type %q: want %q", i, bundle.Type, resources.CABundlePEM)
		}
		found, err := parseAuthorities([]byte(bundle.PEM.Value))
		if err != nil {
			return domain, nil, fmt.Errorf("caBundles[%d].pem: %w", i, err)
		}
		certs = append(certs, found...)
	}
	if len(certs) == 0 {
		return domain, nil, fmt.Errorf("caBundles: no certificate")
	}
	return domain, certs, nil
}

// parseAuthorities reads CA certificates; anything else in the text is an error.
func parseAuthorities(text []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for text = bytes.TrimSpace(text); len(text) > 0; text = bytes.TrimSpace(text) {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("not a PEM certificate")
		}
		cert, err := resources.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if !cert.IsCA {
			return nil, fmt.Errorf("certificate %q is not one of an authority", cert.Subject)
		}
		out = append(out, cert)
	}
	return out, nil
}
