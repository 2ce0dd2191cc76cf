// Package tracker holds what a server knows of the sync with each peer: the progress of each type in each direction,
// what is refused, what is held and which limits are met. It returns that as status, rollout and metrics. Sessions
// (package kds) write it, servers show it. It does not depend on streams, messages or servers.
package tracker
