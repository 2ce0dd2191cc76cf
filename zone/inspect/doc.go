// Package inspect serves over HTTP which policies apply to an inbound, and in which order. It reads snapshots and uses
// zone/matching. It stores nothing, so both a zone and the global can serve it.
package inspect
