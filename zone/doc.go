// Package zone is the zone server: it wires the store, the HTTP API, the identities, xDS and the stream to the global
// together. What each part does is theirs; here is only in which order they start and stop, and the zone's own routes.
package zone
