// Package kds owns the protocol between a global and its zones, and nothing else: the messages, the sessions with their
// senders and receivers, which resources may cross and how they are rewritten on the way. It reads and writes a store
// and speaks gRPC; it must not know what a policy does, nor anything of servers, APIs or proxies.
//
// The wire is that of package kuma.mesh.v1alpha1. What Causeway adds to it (parts, resume, references that are already
// resolved, HTTP matches in permissions) is announced as features; a peer without them gets the plain protocol.
package kds
