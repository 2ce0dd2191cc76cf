// Package identity owns the zone's SPIFFE identities: a certificate authority for each mesh, stored sealed; the
// X.509-SVIDs that it signs for Dataplanes; and the certificate authorities that are trusted for each trust domain.
// Delivering identities to proxies is the task of zone/xds.
package identity
