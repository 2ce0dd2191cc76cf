package identity

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
)

// A realm is what has authorities of its own: a trust domain of a mesh, in this zone. It is called as the mesh is, where the trust
// domain is the zone's own (TrustDomainOf), and `<mesh>:<trust domain>` where a MeshIdentity names another.

// meshName keeps what a peer calls a mesh from leaving the directory.
var meshName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)

// Realm returns the name of the realm of a trust domain.
func Realm(mesh, zone, domain string) string {
	if domain == resources.ZoneTrustDomain(mesh, zone) {
		return mesh
	}
	return mesh + ":" + domain
}

// MeshOfRealm is the mesh that a realm belongs to.
func MeshOfRealm(realm string) string {
	mesh, _, _ := strings.Cut(realm, ":")
	return mesh
}

// domainOf reads the name of a realm. Errors wrap ErrAuthority.
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

// RealmOf is the realm whose authorities a secret of the store holds; ok is false for other secrets.
func RealmOf(secret resources.Key) (realm string, ok bool) {
	return strings.CutPrefix(secret.Name, secretPrefix)
}

// Realms lists those of a mesh: the zone's own first, then those that have authorities, by name.
func (a *Authorities) Realms(mesh string) []string {
	out := []string{mesh}
	for _, name := range a.cfg.Keeper.Names() {
		if realm, ok := strings.CutPrefix(name, secretPrefix); ok && strings.HasPrefix(realm, mesh+":") {
			out = append(out, realm)
		}
	}
	return out
}

// Signing are the certificates of the authorities of a mesh that are to be believed about a trust domain.
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
