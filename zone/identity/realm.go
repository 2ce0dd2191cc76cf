package identity

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
)

// A realm has authorities of its own: it is a trust domain of a mesh in this zone. Its name is that of the mesh if the
// trust domain is the zone's own (TrustDomainOf), and `<mesh>:<trust domain>` if a MeshIdentity names another.

// meshName ensures that a mesh name from a peer cannot lead outside the directory.
var meshName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)

// Realm returns the name of the realm of a trust domain.
func Realm(mesh, zone, domain string) string {
	if domain == resources.ZoneTrustDomain(mesh, zone) {
		return mesh
	}
	return mesh + ":" + domain
}

// MeshOfRealm returns the mesh that a realm belongs to.
func MeshOfRealm(realm string) string {
	mesh, _, _ := strings.Cut(realm, ":")
	return mesh
}

// domainOf returns the trust domain of a realm. Errors wrap ErrAuthority.
func domainOf(realm, zone string) (spiffeid.TrustDomain, error) {
	mesh, name, other := strings.Cut(realm, ":")
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

func secretName(realm string) string { return secretPrefix + realm }

// RealmOf returns the realm whose authorities a secret of the store holds. ok is false for other secrets.
func RealmOf(secret resources.Key) (realm string, ok bool) {
	return strings.CutPrefix(secret.Name, secretPrefix)
}

// Realms lists the realms of a mesh: the zone's own first, then those with authorities, by name.
func (a *Authorities) Realms(mesh string) []string {
	out := []string{mesh}
	for _, name := range a.cfg.Keeper.Names() {
		if realm, ok := strings.CutPrefix(name, secretPrefix); ok && strings.HasPrefix(realm, mesh+":") {
			out = append(out, realm)
		}
	}
	return out
}

// Signing returns the certificates of all authorities of a mesh that are trusted for a trust domain.
func (a *Authorities) Signing(mesh string, domain spiffeid.TrustDomain) []*x509.Certificate {
	var out []*x509.Certificate
	for _, realm := range a.Realms(mesh) {
		if of, err := domainOf(realm, a.cfg.Zone); err != nil || of != domain {
			continue
		}
		all, err := a.All(realm)
		if err != nil {
			continue
		}
		for _, one := range all {
			out = append(out, one.cert)
		}
	}
	return out
}
