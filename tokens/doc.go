// Package tokens issues and verifies bearer tokens: JSON Web Tokens (RFC 7519) with a key id, an audience, an expiry
// and an id for revocation. It also remembers which certificates of users are revoked (RevokeCertificate).
//
// The ring of keys, the revoked ids and serial numbers, and the used ids are secrets of the server's Keeper, so that
// all replicas agree.
package tokens
