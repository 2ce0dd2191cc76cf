package identity

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
)

// A mesh domain has authorities of its own: it is a trust domain of a mesh in this zone. Its name is that of the mesh
// if the trust domain is the zone's own (TrustDomainOf), and `<mesh>:<trust domain>` if a MeshIdentity names another.

// meshName ensures that a mesh name from a peer cannot lead outside the directory.
var meshName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)

// MeshDomain returns the name of the mesh domain of a trust domain.
func MeshDomain(mesh, zone, domain string) string {
	if domain == resources.ZoneTrustDomain(mesh, zone) {
		return mesh
	}
	return mesh + ":" + domain
}

// MeshOfDomain returns the mesh that a mesh domain belongs to.
func MeshOfDomain(meshDomain string) string {
	mesh, _, _ := strings.Cut(meshDomain, ":")
	return mesh
}

// domainOf returns the trust domain of a mesh domain. Errors wrap ErrAuthority.
func domainOf(meshDomain, zone string) (spiffeid.TrustDomain, error) {
	mesh, name, other := strings.Cut(meshDomain, ":")
	if !meshName.MatchString(mesh) {
		return spiffeid.TrustDomain{}, fmt.Errorf("%w: %q is not the name of a mesh", ErrAuthority, mesh)
	}
	if !other {
		return TrustDomainOf(mesh, zone)
	}
	domain, err := spiffeid.TrustDomainFromString(name)
	if err != nil || domain.Name() != name {
		return domain, fmt.Errorf("%w: %q is not a trust domain", ErrAuthority, name)
	}
	return domain, nil
}

const secretPrefix = "identity-ca-"

func secretName(meshDomain string) string { return secretPrefix + meshDomain }

// MeshDomainOf returns the mesh domain whose authorities a secret of the store holds. ok is false for other secrets.
func MeshDomainOf(secret resources.Key) (meshDomain string, ok bool) {
	return strings.CutPrefix(secret.Name, secretPrefix)
}

// MeshDomains lists the mesh domains of a mesh: the zone's own first, then those with authorities, by name.
func (a *Authorities) MeshDomains(mesh string) []string {
	out := []string{mesh}
	for _, name := range a.cfg.Keeper.Names() {
		if meshDomain, ok := strings.CutPrefix(name, secretPrefix); ok && strings.HasPrefix(meshDomain, mesh+":") {
			out = append(out, meshDomain)
		}
	}
	return out
}

// Signing returns the certificates of all authorities of a mesh that are trusted for a trust domain.
func (a *Authorities) Signing(mesh string, domain spiffeid.TrustDomain) []*x509.Certificate {
	var out []*x509.Certificate
	for _, meshDomain := range a.MeshDomains(mesh) {
		if of, err := domainOf(meshDomain, a.cfg.Zone); err != nil || of != domain {
			continue
		}
		all, err := a.All(meshDomain)
		if err != nil {
			continue
		}
		for _, one := range all {
			out = append(out, one.cert)
		}
	}
	return out
}
