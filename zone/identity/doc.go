// Package identity owns the zone's SPIFFE identities: a certificate authority for each mesh, kept in files, the X.509-SVIDs
// that it signs for Dataplanes, and which certificate authorities are believed for which trust domain. It does not know
// how identities travel to proxies; that is zone/xds's part.
package identity
