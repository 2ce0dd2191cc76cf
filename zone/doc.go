// Package zone is the zone server. It wires together the store, the HTTP API, the identities, xDS and the stream to the
// global. Each part lives in its own package. This one only defines the order in which they start and stop, and the
// zone's own routes.
package zone
