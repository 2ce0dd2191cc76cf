// Package tracker keeps what a server knows of the sync with each peer: how far each type has come, each way, what is refused, what is
// held and which bounds are met; and says it as status, rollout and metrics. Sessions (package kds) write it, servers show it.
// It must not know of streams, messages or servers.
package tracker
