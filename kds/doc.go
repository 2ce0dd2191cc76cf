// Package kds implements the protocol between a global and its zones: the messages, the sessions with their senders and
// receivers, which resources cross, and how they are rewritten on the way. It reads and writes a store and speaks gRPC.
// It does not depend on policies, servers, APIs or proxies.
//
// The wire format is that of package kuma.mesh.v1alpha1. Causeway announces its additions (parts, resume, references
// that are already resolved, HTTP matches in permissions) as features; a peer without them gets the plain protocol.
package kds
