package resources

import "strings"

// TrustDomainSuffix ends the trust domain of every zone.
const TrustDomainSuffix = ".mesh.local"

// ZoneTrustDomain returns the trust domain of a mesh in a zone: `<mesh>.<zone>.mesh.local`. Its service accounts are
// `spiffe://<trust domain>/ns/<namespace>/sa/<name>`.
func ZoneTrustDomain(mesh, zone string) string { return mesh + "." + zone + TrustDomainSuffix }

// IsTrustDomainOf reports whether a zone may issue identities of a trust domain, which must match
// `*.<zone>.mesh.local`.
func IsTrustDomainOf(domain, zone string) bool {
	return strings.HasSuffix(domain, "."+zone+TrustDomainSuffix)
}
